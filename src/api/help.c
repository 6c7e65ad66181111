/*
 * help.c
 *	  help(): what an agent needs to know, as text
 *
 * It needs no tenant, since it reads no row.
 */
#include "api/api.h"

pg_noreturn static void
UnknownTopicRefuse(const char *topic)
{
	const char *names[HELP_TOPICS];
	const char *nearest;

	for (int i = 0; i < HELP_TOPICS; i++)
		names[i] = HelpTopics[i].name;
	nearest = NearestWord(topic, names, HELP_TOPICS);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_DEFINITION),
			 errmsg("there is no help on topic \"%s\"", ShortText(topic)),
			 errdetail("The topics are: %s.", WordList(names, HELP_TOPICS)),
			 errhint("Call stepwise.help('%s').", nearest ? nearest : names[0])));
}

/* Answer the help on a topic; without one, the agent's sheet. */
PG_FUNCTION_INFO_V1(stepwise_help);
Datum
stepwise_help(PG_FUNCTION_ARGS)
{
	char	   *topic = ArgumentText(fcinfo, 0);

	for (int i = 0; i < HELP_TOPICS; i++)
		if (topic == NULL || strcmp(topic, HelpTopics[i].name) == 0)
			PG_RETURN_TEXT_P(cstring_to_text(HelpTopics[i].text));
	UnknownTopicRefuse(topic);
}
