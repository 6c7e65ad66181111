"""Work on a plan until it has ended: python3 agent.py PLAN_ID WORKER. Each of several workers has a name of its own.
They connect to DATABASE_URL, or by PGHOST, PGDATABASE and so on. Behind a pooler, LISTEN_URL leads past it."""
import json, os, random, select, sys, threading, time, psycopg

def work(step):
    """Put your work here. Return the result, anything that JSON can hold. An exception fails the step."""
    print("doing", step["name"], step.get("instructions"), step.get("arguments"), flush=True)
    return {"ok": True}

def call(conn, function, **arguments):
    """Call a function of stepwise by named arguments. Repeat it after a serialization failure or a deadlock."""
    named = ", ".join(f"{name} => %({name})s" for name in arguments)
    while True:
        try:
            return conn.execute(f"SELECT stepwise.{function}({named})", arguments).fetchone()[0]
        except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
            time.sleep(random.uniform(0, 0.1))

def do(conn, step, worker, lease, work):
    """Do a step while heartbeats extend its lease. Submit the result, and return the next answer, if there is one."""
    claim = {"step_id": step["stepId"], "attempt": step["attempt"], "worker": worker}
    done = threading.Event()
    def beat():
        while not done.wait(lease / 3):
            call(conn, "heartbeat", extend=f"{lease} s", **claim)
    heart = threading.Thread(target=beat, daemon=True)
    heart.start()
    try:
        function, told = "advance", {"result": json.dumps(work(step), allow_nan=False), "lease": f"{lease} s"}
    except Exception as error:
        function, told = "fail_step", {"error": repr(error)}
    done.set()
    heart.join()
    try:
        return call(conn, function, **told, **claim).get("next")
    except psycopg.DatabaseError as error:
        if error.sqlstate not in ("SW003", "SW012"):
            raise
        print("the step is no longer ours, its result is dropped:", error, flush=True)

def drive(plan, worker, work=work, lease=30, poll=5000):
    """Do what there is to do. While there is nothing, wait for a change, or as long as the answer says."""
    url = os.environ.get("DATABASE_URL", "")
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as conn, \
            psycopg.connect(os.environ.get("LISTEN_URL", url), autocommit=True) as listener:
        listener.execute("LISTEN stepwise")
        while True:
            answer = call(conn, "get_next_step", plan_id=plan, worker=worker, lease=f"{lease} s")
            while answer and answer["status"] == "step_ready":
                answer = do(conn, answer, worker, lease, work)
            if answer and answer["status"] in ("plan_complete", "plan_failed", "plan_cancelled"):
                return answer
            if answer:
                print(answer["status"], answer.get("message"), answer.get("nextCall"), flush=True)
                select.select([listener], [], [], min(answer.get("retryAfterMs", poll), poll) / 1000)
                listener.execute("SELECT")  # takes the notifications

if __name__ == "__main__":
    print(drive(sys.argv[1], sys.argv[2]))
