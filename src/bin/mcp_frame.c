/*
 * mcp_frame.c
 *	  lines in, lines out
 *
 * A message is one line. Input comes in pieces of any size; a line that is
 * too long is dropped as it comes, so memory is bounded. Output is kept until
 * the client reads it, since a client may write to us before it reads.
 */
#include "mcp.h"

#include <unistd.h>

#define KEPT_BUFFER		(1024 * 1024)	/* a larger buffer is freed when it is empty */

/* ---------- in ---------- */

/* Begin to read an input. */
void
FrameInit(Frame *frame)
{
	memset(frame, 0, sizeof(Frame));
	initStringInfo(&frame->bytes);
}

/* Empty a buffer, and give back the memory of a large one. */
static void
EmptyBuffer(StringInfo buffer)
{
	if (buffer->maxlen > KEPT_BUFFER)
	{
		pfree(buffer->data);
		initStringInfo(buffer);
	}
	resetStringInfo(buffer);
}

/* Move what was not yet handed out to the beginning. */
static void
ForgetTaken(Frame *frame)
{
	int			rest = frame->bytes.len - frame->taken;

	if (frame->taken == 0)
		return;
	if (rest == 0)
		EmptyBuffer(&frame->bytes);
	else
	{
		memmove(frame->bytes.data, frame->bytes.data + frame->taken, rest);
		frame->bytes.len = rest;
	}
	frame->searched -= frame->taken;
	frame->taken = 0;
}

/* Add a piece of input. Spans of earlier lines become invalid. */
void
FrameFeed(Frame *frame, const char *bytes, int len)
{
	ForgetTaken(frame);
	appendBinaryStringInfo(&frame->bytes, bytes, len);
}

/* Say that no more input comes: what remains is the last line. */
void
FrameEnd(Frame *frame)
{
	if (!frame->ended && (frame->bytes.len > frame->taken || frame->dropping))
		FrameFeed(frame, "\n", 1);
	frame->ended = true;
}

/* Drop the beginning of a line that is too long. */
static void
DropLongLine(Frame *frame)
{
	if (frame->bytes.len - frame->taken <= MAX_LINE)
		return;
	frame->dropping = true;
	frame->taken = frame->searched = frame->bytes.len;
}

static Span
Trimmed(const char *at, int len)
{
	Span		line = {at, len};

	while (line.len > 0 && isspace((unsigned char) line.at[line.len - 1]))
		line.len--;
	while (line.len > 0 && isspace((unsigned char) line.at[0]))
		line.at++, line.len--;
	return line;
}

/* Get the next line that is not empty. The span is valid until more is fed. */
FrameKind
FrameNext(Frame *frame, Span *line)
{
	char	   *data = frame->bytes.data;
	char	   *end;

	while ((end = memchr(data + frame->searched, '\n', frame->bytes.len - frame->searched)) != NULL)
	{
		int			start = frame->taken;
		bool		dropped = frame->dropping;

		frame->taken = frame->searched = end - data + 1;
		frame->dropping = false;
		if (dropped || frame->taken - 1 - start > MAX_LINE)
			return FRAME_OVERSIZED;
		*line = Trimmed(data + start, frame->taken - 1 - start);
		if (line->len > 0)
			return FRAME_LINE;
	}
	frame->searched = frame->bytes.len;
	DropLongLine(frame);
	return FRAME_NONE;
}

/* Free the buffer. */
void
FrameFree(Frame *frame)
{
	pfree(frame->bytes.data);
}

/* ---------- out ---------- */

static StringInfoData output;
static int	written;

/* Forget what was written, so that a slow client does not make the buffer grow. */
static void
ForgetWritten(void)
{
	if (written < KEPT_BUFFER)
		return;
	output.len -= written;
	memmove(output.data, output.data + written, output.len);
	written = 0;
}

/* Write a message, as soon as the client reads. */
void
OutputLine(const char *line)
{
	if (output.data == NULL)
		initStringInfo(&output);
	ForgetWritten();
	appendStringInfoString(&output, line);
	appendStringInfoChar(&output, '\n');
}

/* Get the number of bytes that the client has not read. */
int
OutputPending(void)
{
	return output.len - written;
}

/*
 * Write what a pipe takes without blocking, after poll() has said that it can
 * be written to. The pipe stays in blocking mode, since other processes may
 * share it. Returns false if the client is gone.
 */
bool
OutputWrite(void)
{
	ssize_t		count = write(STDOUT_FILENO, output.data + written, Min(OutputPending(), 4096));

	if (count < 0)
		return errno == EINTR || errno == EAGAIN;
	written += count;
	if (written == output.len)
	{
		EmptyBuffer(&output);
		written = 0;
	}
	return true;
}

/* Free the buffer. */
void
OutputFree(void)
{
	if (output.data)
		pfree(output.data);
}
