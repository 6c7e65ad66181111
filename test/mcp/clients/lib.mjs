// What the programs of this folder share: checks, and official clients of each generation behind one interface.

import { deepStrictEqual } from 'node:assert';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const PATIENCE = 60000; // milliseconds for a check
const sessions = []; // all that were opened
let last = 0; // request beside a client
export const INFO = { name: 'test', version: '1' };

// Each client that is tested: the package, the options of its constructor, and the version that it must end up with.
export const KINDS = {
  'sdk 1.x': { old: true, version: '2025-11-25' },
  'client 2.x pinned': { options: { versionNegotiation: { mode: { pin: '2026-07-28' } } }, version: '2026-07-28' },
  'client 2.x auto': { options: { versionNegotiation: { mode: 'auto' } }, version: '2026-07-28' },
  'client 2.x legacy': { options: { versionNegotiation: { mode: 'legacy' } }, version: '2025-11-25' },
};

// The program that is tested, as the user of the connection string.
export function command(user, ...options) {
  return { command: process.env.STEPWISE_MCP, args: [...options, `${process.env.CONNECTION} user=${user}`], env: process.env };
}

// Print a line that test/mcp/clients.pl reads. A check that throws or takes too long has failed.
export async function check(name, body) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('it takes too long')), PATIENCE); });
  try {
    await Promise.race([body(), late]);
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`not ok ${name}\n${String(error.stack).replace(/^/gm, '# ')}`);
  } finally {
    clearTimeout(timer);
  }
}

export const is = deepStrictEqual;

export function like(text, pattern) {
  if (!pattern.test(text)) throw new Error(`${JSON.stringify(text)} does not match ${pattern}`);
}

// The error of a promise that must fail.
export async function failure(promise) {
  const value = await promise.catch((error) => ({ failed: error }));
  if (!value?.failed) throw new Error(`there was no error, but ${JSON.stringify(value)}`);
  return value.failed;
}

// Wait until a function returns something true, and return that.
export async function until(look) {
  for (;;) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

// Run statements beside all clients, as the owner.
export async function sql(statements) {
  const { stdout } = await promisify(execFile)('psql', ['-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', process.env.CONNECTION, '-c', statements]);
  return stdout.trim();
}

export async function restartServer() {
  await promisify(execFile)('pg_ctl', ['-D', process.env.DATA, '-m', 'fast', '-w', '-l', `${process.env.DATA}/restart.log`, 'restart']);
}

// Connect a client: connect KIND, {user, answer, capabilities, server}. "answer" answers the questions to a person, and makes the
// client one that can be asked. The questions, the resources that were updated, and all messages are kept.
export async function connect(kind, { user = 'owner', answer, capabilities = {}, server = command(user) } = {}) {
  const { old, options: negotiation, version } = KINDS[kind];
  const can = { ...capabilities, ...(answer ? { elicitation: {} } : {}) };
  const client = new (old ? OldClient : Client)(INFO, { capabilities: can, ...negotiation });
  const session = { client, version, old, modern: version === '2026-07-28', questions: [], updated: [], heard: [] };

  if (answer) {
    client.setRequestHandler(old ? ElicitRequestSchema : 'elicitation/create', async (request) => {
      session.questions.push(request.params);
      return answer(request.params);
    });
  }
  client.setNotificationHandler(old ? ResourceUpdatedNotificationSchema : 'notifications/resources/updated', (message) => { session.updated.push(message.params.uri); });
  session.transport = new (old ? OldTransport : StdioClientTransport)({ ...server, stderr: 'ignore' });
  session.transport.onmessage = (message) => { session.heard.push(message); };
  sessions.push(session);
  await client.connect(session.transport);

  // Call a tool, and return its result, or the object in it.
  session.call = (name, args = {}, more = {}) => {
    const params = { name, arguments: args, ...more.params };
    return old ? client.callTool(params, undefined, more.request) : client.callTool(params, more.request);
  };
  session.tool = async (name, args, more) => {
    const result = await session.call(name, args, more);
    if (result.isError) throw new Error(result.content[0].text);
    return result.structuredContent;
  };
  session.error = async (name, args) => {
    const result = await session.call(name, args);
    if (!result.isError) throw new Error(`there was no error, but ${JSON.stringify(result)}`);
    return result.content[0].text;
  };
  // Any request, beside the client, which would not accept every answer: its result, as it came.
  session.ask = async (method, params = {}) => {
    const id = `beside-${++last}`;
    const meta = session.modern ? { 'io.modelcontextprotocol/protocolVersion': version, 'io.modelcontextprotocol/clientCapabilities': can } : {};
    await session.transport.send({ jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...meta, ...params._meta } } });
    const answer = await until(() => session.heard.find((message) => message.id === id && !message.method));
    if (answer.error) throw Object.assign(new Error(answer.error.message), answer.error);
    return answer.result;
  };
  session.close = () => client.close();
  return session;
}

export async function plan(session, name, steps) {
  return (await session.tool('create_plan', { name, goal: `The goal of ${name}`, steps })).planId;
}

// A check that failed may have left clients open. They would keep the program alive.
export async function finish() {
  await Promise.all(sessions.map((session) => session.close()));
  process.exit();
}
