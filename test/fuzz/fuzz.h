/*
 * fuzz.h
 *	  what the files of the fuzz target share
 */
#ifndef STEPWISE_FUZZ_H
#define STEPWISE_FUZZ_H

#include "define/define.h"

/* ---------- fuzz.c: random numbers, values, the run ---------- */

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

/* a value, with properties that are known without jsonb */
typedef struct Val
{
	Kind		kind;
	int			rank;			/* boolean: 0 or 1; number and string: position in the order */
	const char *text;			/* as JSON */
	int			count;
	struct Val *elements[4];	/* of an array, or the values of an object */
	int			keys;			/* of an object: set of keys, as bits */
} Val;

extern Val *RandomScalar(void);
extern Val *RandomVal(int depth);
extern Val *MakeArray(Val *first, Val *second);
extern bool ValEqual(const Val *a, const Val *b);
extern Jsonb *JsonFromText(const char *text);
extern JsonbValue *ValueFromText(const char *text);
extern char *Mutate(const char *text);	/* change it at random */

typedef struct Run
{
	const char *name;
	uint64		seed;
	int			number;
	const char *text;			/* text of the case, or NULL */
	int			accepted;
	int			results[3];		/* by ConditionResult */
} Run;

#define FAIL(...) ereport(ERROR, (errcode(ERRCODE_ASSERT_FAILURE), errmsg(__VA_ARGS__)))

extern void StartCase(uint64 seed, int number); /* seeds the random numbers */
extern Datum RunCases(FunctionCallInfo fcinfo, const char *name, void (*one) (Run *run));
extern void CheckFault(const char *text, const ParseFault *fault);

/* ---------- fuzz_condition.c ---------- */

extern char *RandomCondition(bool branching);
extern char **OperandNames(const Condition *condition);
extern const char *const TruthName[];

#endif							/* STEPWISE_FUZZ_H */
