"""An MCP server on stdin and stdout that forwards each message to stepwise.mcp: python3 mcp_server.py. It connects to DATABASE_URL, or
by PGHOST, PGDATABASE and so on. stepwise-mcp also runs calls at the same time, cancels, reports progress, subscribes, and asks people
for older clients."""
import json, os, sys, psycopg

MODERN = "io.modelcontextprotocol/protocolVersion"
negotiated = {}  # what an older client said in initialize; the database keeps no session
conn = None

def complete(message):
    """Add what was negotiated, unless the message says its version itself."""
    params = message.get("params", {})
    meta = params.get("_meta", {})
    if message.get("method") == "initialize" or MODERN in meta:
        return message
    return {**message, "params": {**params, "_meta": {**meta, **negotiated}}}

def ask(message):
    """Repeat a call after a serialization failure or a deadlock. Connect anew if the connection was lost."""
    global conn
    while True:
        try:
            if conn is None or conn.closed:
                conn = psycopg.connect(os.environ.get("DATABASE_URL", ""), autocommit=True, prepare_threshold=None)
            return conn.execute("SELECT stepwise.mcp(%s)", [json.dumps(message)]).fetchone()[0]
        except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
            continue

def answer(line):
    """The answer to a line, or None for a notification."""
    message = {}
    try:
        message = json.loads(line)
        response = ask(complete(message))
        if message.get("method") == "initialize" and "result" in response:
            negotiated["stepwise/version"] = response["result"]["protocolVersion"]
            negotiated["stepwise/clientCapabilities"] = message["params"]["capabilities"]
        return response
    except ValueError as error:
        return {"jsonrpc": "2.0", "error": {"code": -32700, "message": f"not JSON: {error}"}}
    except (AttributeError, KeyError, TypeError) as error:
        return {"jsonrpc": "2.0", "error": {"code": -32600, "message": f"not a request: {error!r}"}}
    except psycopg.Error as error:
        failed = {"code": -32603, "message": f"the database did not answer: {error}"}
        return {"jsonrpc": "2.0", "id": message["id"], "error": failed} if "id" in message else None

for line in sys.stdin:
    response = answer(line)
    if response is not None:
        print(json.dumps(response), flush=True)
