/*
 * time.c
 *	  show times and intervals in one form, whatever the settings of the session
 */
#include "base/base.h"

#include "miscadmin.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"

/* Show a time in UTC, in ISO 8601 with microseconds. */
char *
TimeText(TimestampTz at)
{
	struct pg_tm tm;
	fsec_t		fsec;

	if (TIMESTAMP_NOT_FINITE(at))
		return pstrdup(TIMESTAMP_IS_NOBEGIN(at) ? "-infinity" : "infinity");
	if (timestamp2tm(at, NULL, &tm, &fsec, NULL, NULL) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	/* year 0 of tm is 1 BC */
	return psprintf("%04d-%02d-%02dT%02d:%02d:%02d.%06dZ%s", tm.tm_year > 0 ? tm.tm_year : 1 - tm.tm_year, tm.tm_mon,
					tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int) fsec, tm.tm_year > 0 ? "" : " BC");
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
