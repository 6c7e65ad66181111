# Runs after the blocks of doc/drivers.md: transaction() repeats what could not be serialized.
conn.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
other = psycopg.connect(autocommit=True)
race = call(conn, "create_plan", name="race", goal="Two at once", steps=Jsonb([{"name": "a", "dependsOn": []}, {"name": "b"}]))
a, b = (call(conn, "get_next_step", plan_id=race["planId"]) for _ in range(2))
tried = 0

def submit():
    global tried
    tried += 1
    conn.execute("SELECT count(*) FROM stepwise.step WHERE plan_id = %s", [race["planId"]])
    if tried == 1:
        call(other, "submit_step_result", step_id=b["stepId"], result=Jsonb(1))
    return call(conn, "submit_step_result", step_id=a["stepId"], result=Jsonb(1))

answer = transaction(conn, submit)
print(tried, answer["planStatus"])  # => 2 completed

# It gives up in the end, and does not repeat other errors.
def broken(code):
    global tried
    tried += 1
    conn.execute(f"DO $$ BEGIN RAISE EXCEPTION USING errcode = '{code}'; END $$")

for code in ("40P01", "22012"):
    tried = 0
    try:
        transaction(conn, lambda: broken(code), 3)
    except psycopg.DatabaseError as error:
        print(error.sqlstate, tried)
# => 40P01 3
# => 22012 1

# An answer is the same in text and in binary, whether it was prepared or not.
answers = [conn.execute("SELECT stepwise.task_variables(%s)", [race["planId"]], binary=binary, prepare=prepare).fetchone()[0]
           for binary in (False, True) for prepare in (False, True)]
print(len(answers), all(each == answers[0] for each in answers))  # => 4 True
