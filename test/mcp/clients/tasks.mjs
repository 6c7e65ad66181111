// Plans as tasks of both generations. Each message about a task is checked with the schemas of the tasks extension.

import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { createTaskSessionFromClient, resultFromTaskOutcome, toolDeclarationFromMcpTool } from '@modelcontextprotocol/ext-tasks/client';
import * as v1 from '@modelcontextprotocol/ext-tasks/core/v1';
import * as v2 from '@modelcontextprotocol/ext-tasks/core/v2';
import { INFO, check, command, connect, failure, finish, is, like, plan, sql, until } from './lib.mjs';

const brewing = (seconds) => [{ name: 'brew', tool: 'brew', arguments: { leaf: 'assam', seconds } }];
const asking = [...brewing(0), { name: 'milk', prompt: 'Milk?' }];
const milk = { action: 'accept', content: { response: 'yes' } };
const quiet = `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`;

// --- 2025-11-25 --------------------------------------------------------------

async function testOld() {
  const session = await connect('sdk 1.x', { answer: async () => milk });
  const tasks = session.client.experimental.tasks;
  await session.client.listTools();
  // The newest answer that has this key, as it came.
  const heard = (key) => session.heard.findLast((message) => message.result && key in message.result).result;
  const stream = async (name, args) => {
    const messages = [];
    for await (const message of tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, { task: {} })) messages.push(message);
    return messages;
  };

  await check('sdk 1.x tasks: the capabilities', async () => {
    v1.ServerCapabilitiesV1Schema.parse(session.client.getServerCapabilities());
    v1.ServerTaskCapabilitiesV1Schema.parse(session.client.getServerCapabilities().tasks);
  });
  await check('sdk 1.x tasks: a run as a task, to its result', async () => {
    const id = await plan(session, 'old task', brewing(0.5));
    const messages = await stream('run', { plan_id: id });
    v1.CreateTaskResultV1Schema.parse(heard('task'));
    v1.GetTaskResultV1Schema.parse(heard('taskId'));
    is([messages[0].type, messages[0].task.taskId, messages[0].task.status], ['taskCreated', id, 'working']);
    is([messages.at(-1).type, messages.at(-1).result.structuredContent.task_status], ['result', 'completed']);
    is(messages.at(-1).result._meta['io.modelcontextprotocol/related-task'].taskId, id);
  });
  await check('sdk 1.x tasks: a person is asked before the result', async () => {
    const id = await plan(session, 'old asking', asking);
    const last = (await stream('run', { plan_id: id })).at(-1);
    is([last.type, last.result.structuredContent.task_status, session.questions.length], ['result', 'completed', 1]);
  });
  await check('sdk 1.x tasks: a tool of the database', async () => {
    is((await stream('brew', { leaf: 'mint' })).at(-1).result.structuredContent, { cup: 'mint' });
    const messages = await stream('brew', { leaf: 'none' });
    is((await tasks.getTask(messages[0].task.taskId)).status, 'failed');
    like((await tasks.getTaskResult(messages[0].task.taskId, CallToolResultSchema)).content[0].text, /there is no leaf/);
  });
  await check('sdk 1.x tasks: list', async () => {
    const list = v1.ListTasksResultV1Schema.parse(await tasks.listTasks());
    is(list.tasks.length > 0 && list.tasks.every((task) => v1.TaskV1Schema.safeParse(task).success), true);
  });
  await check('sdk 1.x tasks: cancel', async () => {
    const id = await plan(session, 'old cancelled', brewing(60));
    const waiting = stream('run', { plan_id: id });
    await until(async () => await sql(quiet) === '1');
    is((await tasks.cancelTask(id)).status, 'cancelled');
    v1.CancelTaskResultV1Schema.parse(heard('taskId'));
    await until(async () => await sql(quiet) === '0');
    await waiting;
    is((await failure(tasks.cancelTask(id))).code, -32602);
    is(await sql(`SELECT status FROM stepwise.plan WHERE id = '${id}'`), 'cancelled');
  });
  await check('sdk 1.x tasks: no such task', async () => {
    is((await failure(tasks.getTask('00000000-0000-7000-8000-000000000001'))).code, -32602);
  });
}

// --- 2026-07-28 --------------------------------------------------------------

// Answers of these methods, and of calls that are tasks, have schemas.
const SCHEMAS = { 'tasks/get': v2.GetTaskResultV2Schema, 'tasks/update': v2.UpdateTaskResultV2Schema, 'tasks/cancel': v2.CancelTaskResultV2Schema };

// The client of the SDK does not read answers about tasks, so that the extension asks for a way of its own.
async function rawDispatch() {
  const transport = new StdioClientTransport({ ...command('owner'), stderr: 'ignore' });
  const waiting = new Map();
  const seen = [];
  const told = []; // notifications
  let last = 0;
  transport.onmessage = (message) => {
    if (message.method) told.push(message);
    else waiting.get(message.id)?.(message);
  };
  await transport.start();
  const dispatch = async (request) => {
    const id = ++last;
    const answer = await new Promise((resolve) => { waiting.set(id, resolve); transport.send({ ...request, jsonrpc: '2.0', id }); });
    if (answer.error) return { kind: 'error', error: answer.error };
    const schema = answer.result.resultType === 'task' ? v2.CreateTaskResultV2Schema : SCHEMAS[request.method];
    if (schema) schema.parse(answer.result);
    seen.push(schema ? request.method : `${request.method} ${answer.result.resultType}`);
    return { kind: 'result', result: answer.result };
  };
  return { dispatch, seen, told, close: () => transport.close() };
}

async function testNew(kind) {
  const session = await connect(kind, { capabilities: { extensions: { [v2.TASKS_EXTENSION_ID_V2]: {} } }, answer: async () => milk });
  const raw = await rawDispatch();
  const asked = [];
  const tasks = createTaskSessionFromClient(session.client, {
    endpointId: 'stepwise',
    onInputRequest: async (request) => { asked.push(request); return milk; },
    ...(session.modern && { rawDispatch: raw.dispatch, v2RequestFraming: { protocolVersion: session.version, clientInfo: INFO, clientCapabilities: { elicitation: {} } } }),
  });
  const { tools } = await session.client.listTools();
  const declaration = (name) => ({ declaration: toolDeclarationFromMcpTool(tools.find((tool) => tool.name === name)), task: { preference: session.modern ? 'allow' : 'prefer' } });
  const settle = async (name, args) => {
    const execution = await tasks.callTool(name, args, declaration(name));
    return [execution.kind, resultFromTaskOutcome((await execution.settle()).outcome)];
  };

  await check(`${kind} tasks: a run as a task, to its result`, async () => {
    const [how, result] = await settle('run', { plan_id: await plan(session, 'task', brewing(0.5)) });
    is([how, result.structuredContent.task_status], ['task', 'completed']);
  });
  if (session.modern) {
    await check(`${kind} tasks: the capability`, async () => {
      is(v2.hasTaskServerCapabilityV2(session.client.getServerCapabilities()), true);
    });
    await check(`${kind} tasks: a person is asked, and the task goes on`, async () => {
      const [how, result] = await settle('run', { plan_id: await plan(session, 'asking', asking) });
      is([how, result.structuredContent.task_status, asked.length], ['task', 'completed', 1]);
    });
    await check(`${kind} tasks: what needs the client is answered at once`, async () => {
      const [how, result] = await settle('run', { plan_id: await plan(session, 'mine', [{ name: 'a', instructions: 'Do it' }]) });
      is([how, result.structuredContent.task_status], ['immediate', 'working']);
    });
    await check(`${kind} tasks: a tool that fails is a completed task`, async () => {
      const [how, result] = await settle('brew', { leaf: 'none' });
      is([how, result.isError], ['task', true]);
    });
    await check(`${kind} tasks: cancel`, async () => {
      const id = await plan(session, 'cancelled', brewing(60));
      const execution = await tasks.callTool('run', { plan_id: id }, declaration('run'));
      await until(async () => await sql(quiet) === '1');
      await execution.cancel();
      is((await execution.settle()).outcome.status, 'cancelled');
      await until(async () => await sql(quiet) === '0');
    });
    const framed = (method, params = {}, capabilities = {}) => raw.dispatch({ method, params: { ...params,
      _meta: { 'io.modelcontextprotocol/protocolVersion': session.version, 'io.modelcontextprotocol/clientCapabilities': capabilities } } });
    await check(`${kind} tasks: the end of a task is told`, async () => {
      const id = await plan(session, 'told', brewing(0));
      framed('subscriptions/listen', { notifications: { taskIds: [id] } }, { extensions: { [v2.TASKS_EXTENSION_ID_V2]: {} } });
      const accepted = await until(() => raw.told.find((message) => message.method === 'notifications/subscriptions/acknowledged'));
      is(v2.readAcceptedTaskIdsV2(accepted.params), [id]);
      await sql(`SELECT stepwise.run('${id}')`);
      const last = await until(() => raw.told.findLast((message) => message.method === 'notifications/tasks' && message.params.status === 'completed'));
      v2.TaskStatusNotificationV2Schema.parse(last);
      is(last.params.taskId, id);
    });
    await check(`${kind} tasks: methods that are gone`, async () => {
      is([(await framed('tasks/list')).error.code, (await framed('tasks/result')).error.code], [-32601, -32601]);
      is((await framed('tasks/get')).error.code, -32021);
    });
    await check(`${kind} tasks: all kinds of messages were checked`, async () => {
      is(['tools/call', 'tasks/get', 'tasks/update', 'tasks/cancel'].filter((method) => !raw.seen.includes(method)), []);
    });
  }
  await tasks.close();
  await raw.close();
}

await testOld();
await testNew('client 2.x pinned');
await testNew('client 2.x legacy');
await finish();
