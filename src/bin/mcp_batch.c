/*
 * mcp_batch.c
 *	  answers that go out together
 *
 * A client of version 2025-03-26 may send several messages in one array, and
 * gets one array with their answers. A message is in its batch until it is
 * answered or forgotten. The last one that leaves writes the line, unless
 * nothing was answered. An answer for which the line has no room is a line of
 * its own.
 */
#include "mcp.h"

#define MAX_ANSWERS		(4 * MAX_LINE)	/* bytes of all answers together */

/* Open a batch. Who opens it leaves it after the last message was read. */
Batch *
BatchOpen(void)
{
	Batch	   *batch = palloc(sizeof(Batch));

	batch->open = 1;
	initStringInfo(&batch->answers);
	return batch;
}

/* Let another message wait for its answer. */
void
BatchJoin(Batch *batch)
{
	batch->open++;
}

/* Add an answer. */
void
BatchAdd(Batch *batch, const char *answer)
{
	if (batch->answers.len + strlen(answer) > MAX_ANSWERS)
	{
		OutputLine(answer);
		return;
	}
	appendStringInfoChar(&batch->answers, batch->answers.len == 0 ? '[' : ',');
	appendStringInfoString(&batch->answers, answer);
}

/* Leave a batch. The last one writes it, and frees it. */
void
BatchLeave(Batch *batch)
{
	if (--batch->open > 0)
		return;
	if (batch->answers.len > 0)
	{
		appendStringInfoChar(&batch->answers, ']');
		OutputLine(batch->answers.data);
	}
	pfree(batch->answers.data);
	pfree(batch);
}
