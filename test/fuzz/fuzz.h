/*
 * fuzz.h
 *	  what the files of the fuzz target share
 */
#ifndef STEPWISE_FUZZ_H
#define STEPWISE_FUZZ_H

#include "define/define.h"

/* ---------- fuzz.c: chance, values, the run ---------- */

extern int	Draw(int count);	/* one of 0 ... count - 1 */

#define DRAW(array) ((array)[Draw(lengthof(array))])

typedef enum Kind
{
	KIND_NULL,
	KIND_BOOLEAN,
	KIND_NUMBER,
	KIND_STRING,
	KIND_ARRAY,
	KIND_OBJECT
} Kind;

/* a value, with what one knows about it without jsonb */
typedef struct Val
{
	Kind		kind;
	int			rank;			/* boolean: 0 or 1; number and string: place in the order */
	const char *text;			/* as JSON */
	int			count;
	struct Val *elements[4];	/* of an array, or the values of an object */
	int			keys;			/* of an object: which ones, as bits */
} Val;

extern Val *RandomScalar(void);
extern Val *RandomVal(int depth);
extern Val *MakeArray(Val *first, Val *second);
extern bool ValEqual(const Val *a, const Val *b);
extern Jsonb *JsonFromText(const char *text);
extern JsonbValue *ValueFromText(const char *text);
extern char *Mutate(const char *text);	/* damage it at random */

typedef struct Run
{
	const char *name;
	uint64		seed;
	int			number;
	const char *text;			/* of the case, as far as it is known */
	int			accepted;
	int			results[3];		/* by ConditionResult */
} Run;

#define FAIL(...) ereport(ERROR, (errcode(ERRCODE_ASSERT_FAILURE), errmsg(__VA_ARGS__)))

extern void StartCase(uint64 seed, int number); /* all that is drawn follows from these */
extern Datum RunCases(FunctionCallInfo fcinfo, const char *name, void (*one) (Run *run));
extern void CheckFault(const char *text, const ParseFault *fault);

/* ---------- fuzz_condition.c ---------- */

extern char *RandomCondition(bool branching);
extern char **OperandNames(const Condition *condition);
extern const char *const TruthName[];

#endif							/* STEPWISE_FUZZ_H */
