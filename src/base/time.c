/*
 * time.c
 *	  show times and intervals in one form, whatever the settings of the session
 */
#include "base/base.h"

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"

/* Write a number with leading zeros and the character behind it; return where the text goes on. */
static char *
NumberPut(char *text, int number, int digits, char behind)
{
	text = pg_ultostr_zeropad(text, number, digits);
	*text = behind;
	return text + 1;
}

/* Show a time in UTC, in ISO 8601 with microseconds. Answers have many of them, and sprintf would take most of the time. */
char *
TimeText(TimestampTz at)
{
	struct pg_tm tm;
	fsec_t		fsec;
	char	   *text;
	char	   *end;

	if (TIMESTAMP_NOT_FINITE(at))
		return pstrdup(TIMESTAMP_IS_NOBEGIN(at) ? "-infinity" : "infinity");
	if (timestamp2tm(at, NULL, &tm, &fsec, NULL, NULL) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	text = palloc(MAXDATELEN + 1);
	/* year 0 of tm is 1 BC */
	end = NumberPut(text, tm.tm_year > 0 ? tm.tm_year : 1 - tm.tm_year, 4, '-');
	end = NumberPut(end, tm.tm_mon, 2, '-');
	end = NumberPut(end, tm.tm_mday, 2, 'T');
	end = NumberPut(end, tm.tm_hour, 2, ':');
	end = NumberPut(end, tm.tm_min, 2, ':');
	end = NumberPut(end, tm.tm_sec, 2, '.');
	end = NumberPut(end, (int) fsec, 6, 'Z');
	strcpy(end, tm.tm_year > 0 ? "" : " BC");
	return text;
}

/* Show an interval in the style "postgres". */
char *
IntervalText(Interval *interval)
{
	struct pg_itm itm;
	char		text[MAXDATELEN + 1];

#ifdef INTERVAL_NOT_FINITE
	/* all styles show infinite intervals alike */
	if (INTERVAL_NOT_FINITE(interval))
		return DatumGetCString(DirectFunctionCall1(interval_out, IntervalPGetDatum(interval)));
#endif
	interval2itm(*interval, &itm);
	EncodeInterval(&itm, INTSTYLE_POSTGRES, text);
	return pstrdup(text);
}

/* Add an interval to a time. */
TimestampTz
TimeAfter(TimestampTz from, Interval *interval)
{
	return DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval, TimestampTzGetDatum(from),
												   IntervalPGetDatum(interval)));
}
