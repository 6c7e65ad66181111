// An MCP server on stdin and stdout that forwards each message to stepwise.mcp: node mcp_server.js. It connects to DATABASE_URL, or
// by PGHOST, PGDATABASE and so on. stepwise-mcp also cancels, reports progress, subscribes, and asks people for older clients.
const { StdioServerTransport } = require('@modelcontextprotocol/sdk/server/stdio.js');
const { Pool } = require('pg');

const pool = new Pool({ connectionString: process.env.DATABASE_URL });
const transport = new StdioServerTransport();
let negotiated = {}; // what an older client said in initialize; the database keeps no session

// Add what was negotiated, unless the message says its version itself.
function complete(message) {
  const meta = message.params?._meta ?? {};
  if (message.method === 'initialize' || 'io.modelcontextprotocol/protocolVersion' in meta) return message;
  return { ...message, params: { ...message.params, _meta: { ...meta, ...negotiated } } };
}

// Repeat a call after a serialization failure or a deadlock.
async function ask(message) {
  try {
    return (await pool.query('SELECT stepwise.mcp($1) AS answer', [JSON.stringify(message)])).rows[0].answer;
  } catch (error) {
    if (['40001', '40P01'].includes(error.code)) return ask(message);
    if (message.id === undefined) return null;
    return { jsonrpc: '2.0', id: message.id, error: { code: -32603, message: `the database did not answer: ${error.message}` } };
  }
}

async function forward(message) {
  const answer = await ask(complete(message));
  if (message.method === 'initialize' && answer.result) {
    negotiated = { 'stepwise/version': answer.result.protocolVersion, 'stepwise/clientCapabilities': message.params.capabilities };
  }
  if (answer) await transport.send(answer);
}

pool.on('error', (error) => console.error(error.message)); // an idle connection was lost; the next call makes another
transport.onmessage = forward;
transport.onerror = (error) => console.error('not a message:', error.message);
process.stdin.on('end', () => pool.end());
transport.start();
