"""The agent of examples/, with work that does what a test asks for: worker.py PLAN_ID WORKER LEASE POLL

A worker named "victim" holds its first step until it is killed. A step can wait until there is a file.
"""
import os, sys, time
sys.path.insert(0, "examples")
import agent

plan, worker, lease, poll = sys.argv[1:]

def work(step):
    if worker == "victim":
        print("holding", step["name"], flush=True)
        time.sleep(600)
    if step["arguments"].get("fails"):
        raise ValueError("no water")
    if step["arguments"].get("unfit"):
        return float("nan")
    while "until" in step["arguments"] and not os.path.exists(step["arguments"]["until"]):
        time.sleep(0.05)
    time.sleep(step["arguments"].get("seconds", 0))
    return {"by": worker}

print(agent.drive(plan, worker, work, float(lease), int(poll))["status"])
