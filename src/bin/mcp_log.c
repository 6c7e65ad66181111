/*
 * mcp_log.c
 *	  the log file, stderr, the clock
 *
 * The log has one line for each message: its direction, method, id, size and
 * time. It has no contents, since they may be confidential.
 */
#include "mcp.h"

#include <time.h>

static FILE *log_file;

/* Append to this file from now on. */
void
LogOpen(const char *path)
{
	log_file = fopen(path, "a");
	if (log_file == NULL)
	{
		Complain("could not open the log file \"%s\": %s", path, strerror(errno));
		exit(1);
	}
	setvbuf(log_file, NULL, _IOLBF, 0);
}

static void WriteLine(FILE *file, const char *prefix, const char *format, va_list arguments) pg_attribute_printf(3, 0);

static void
WriteLine(FILE *file, const char *prefix, const char *format, va_list arguments)
{
	fputs(prefix, file);
	vfprintf(file, format, arguments);
	fputc('\n', file);
}

/* Write a line to the log, if there is one. */
void
LogLine(const char *format,...)
{
	va_list		arguments;
	char		prefix[64];
	time_t now = time(NULL);

	if (log_file == NULL)
		return;
	strftime(prefix, sizeof(prefix), "%Y-%m-%dT%H:%M:%SZ ", gmtime(&now));
	va_start(arguments, format);
	WriteLine(log_file, prefix, format, arguments);
	va_end(arguments);
}

/* Say something to the person who set up the program: on stderr, and in the log. */
void
Complain(const char *format,...)
{
	va_list		arguments;

	va_start(arguments, format);
	WriteLine(stderr, "stepwise-mcp: ", format, arguments);
	va_end(arguments);
	if (log_file == NULL)
		return;
	va_start(arguments, format);
	WriteLine(log_file, "! ", format, arguments);
	va_end(arguments);
}

/* Get a time that never goes backwards. */
Milliseconds
Now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (Milliseconds) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
