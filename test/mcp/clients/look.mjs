// Who only reads, by its role or by the option of the program, is told of no tool that is not listed there: in instructions, answers,
// handoff, resources and errors. The same holds for a role that may not decide.

import { check, command, connect, failure, finish, is, like, sql } from './lib.mjs';
import { WAITS, next, reach } from './waits.mjs';

const NOTHING = '00000000-0000-7000-8000-000000000001';
const names = async (session) => (await session.client.listTools()).tools.map((tool) => tool.name);

// The texts of an answer that are ours, and the calls that it names.
const calls = (value) => (value && typeof value === 'object' ? Object.entries(value).flatMap(([key, part]) =>
  (/^(next_?call|alternatives|call)$/i.test(key) ? [part].flat().map((call) => call.function) : calls(part))) : []);

// Check what was told: it names no function or tool but those that are listed. Names of one word are words, too, and an action of
// modify_plan may have the name of a tool.
function namesOnly(told, listed, known) {
  const text = JSON.stringify(told);
  const others = known.filter((name) => name.includes('_') && !listed.includes(name));
  is([others.filter((name) => new RegExp(`(?<!action\\W{1,8}|')\\b${name}\\b`).test(text)), text], [[], text]);
  is([calls(told).filter((name) => !listed.includes(name)), text], [[], text]);
  for (const [, name] of text.matchAll(/stepwise\.(\w+)/g)) is([name, listed.includes(name)], [name, true]);
}

// What a connection can be told about a plan.
async function tell(session, id, all) {
  const look = all ? { get_plan_status: {}, get_plan_context: {}, why: {}, execution: {}, workflow_response: {} }
    : Object.fromEntries(['status', 'context', 'why', 'tree'].map((view) => [view, { view }]));
  const told = [];
  for (const [name, more] of Object.entries(look)) told.push((await session.call(all ? name : 'get_plan_status', { plan_id: id, ...more })).structuredContent);
  if (!all) told.push(await session.tool('get_plan_status', { plan_id: id, view: 'context', step: (await sql(`SELECT name FROM stepwise.step WHERE plan_id = '${id}' LIMIT 1`)) }));
  told.push((await session.call('handoff', { plan_id: id })).content[0].text);
  told.push((await session.ask('resources/read', { uri: `stepwise://plan/${id}` })).contents.map((content) => content.text));
  return told;
}

async function use(kind, who, known, { server, all, decides = false, acts = false }) {
  const name = (what) => `${kind}, ${who}: ${what}`;
  const agent = await connect(kind, { user: 'agent' });
  const session = await connect(kind, { server, answer: async () => ({ action: 'accept', content: { decision: 'approve', response: 'yes' } }), capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } });
  const listed = await names(session);

  await check(name('what is listed'), async () => {
    is([listed.includes('get_next_step'), listed.includes('submit_user_decision'), listed.includes('get_plan_status')], [acts, decides, true]);
    is((await session.client.listPrompts()).prompts.length > 0, acts);
  });
  await check(name('instructions name what is listed'), async () => {
    namesOnly(session.client.getInstructions(), listed, known);
    is(session.client.getInstructions().length < 2000, true);
    like(session.client.getInstructions(), acts ? /get_next_step/ : /only look/);
  });
  for (const [wait, way] of Object.entries(WAITS)) {
    await check(name(`waiting for ${wait}, only what is listed is told`), async () => {
      const id = await reach(agent, way);
      const before = await sql(`SELECT sum(audit_entries) FROM stepwise.plan WHERE root_id = '${id}'`);
      const told = await tell(session, id, all);
      namesOnly(told, listed, known);
      is(JSON.stringify(told).includes('only reads'), !acts && who !== 'a reader' && await sql(`SELECT status FROM stepwise.plan WHERE id = '${id}'`) !== 'completed');
      // the function get_plan_status marks a stall, and says that it does not only read
      if (!all || !acts) is(await sql(`SELECT sum(audit_entries) FROM stepwise.plan WHERE root_id = '${id}'`), before);
    });
  }
  await check(name('errors name what is listed'), async () => {
    const id = await reach(agent, WAITS['a prompt']);
    const errors = [['get_plan_status', { plan_id: NOTHING }], ['search_artifacts', { plan_id: id, name: 'none' }], ['get_plan_status', { plan_id: id, step: 'zzz' }], ['get_workflow', { name: 'none' }], ['get_output', { plan_id: NOTHING }]];
    for (const [tool, args] of errors.filter(([, args]) => !all || !args.step)) namesOnly(await session.error(tool, args), [...listed, 'get_workflow'], known);
  });
  if (!acts) {
    await check(name('no task is made of what cannot be done'), async () => {
      const id = await reach(agent, WAITS['the database']);
      for (const more of session.modern ? [{}] : [{}, { task: {} }]) {
        const answer = await session.ask('tools/call', { name: 'run', arguments: { plan_id: id }, ...more }).catch((error) => ({ isError: true, content: [{ text: error.message }] }));
        is([answer.isError, /^(25006|42501): /.test(answer.content[0].text)], [true, true]);
      }
      // a tool of the database is a matter of its own rights
      if (who === 'a reader') is((await session.tool('brew', { leaf: 'mint' })).cup, 'mint');
    });
    await check(name('nothing can be done, and nobody is asked'), async () => {
      const id = await reach(agent, WAITS['a gate after']);
      const whole = () => sql(`SELECT string_agg(concat_ws(' ', name, status, attempt, result), ', ' ORDER BY step_order) FROM stepwise.step WHERE plan_id = '${id}'`);
      const counts = () => sql('SELECT (SELECT count(*) FROM stepwise.plan), (SELECT count(*) FROM stepwise.audit), (SELECT count(*) FROM stepwise.artifact)');
      const checkpoint = await sql(`SELECT checkpoint_id FROM stepwise.checkpoints WHERE plan_id = '${id}'`);
      const before = [await whole(), await counts()];
      const answers = { inputResponses: { [checkpoint]: { action: 'accept', content: { decision: 'approve' } } } };
      const tries = [['create_plan', { name: 'x', goal: 'x', steps: [{ name: 'x' }] }], ['start_workflow', { workflow: 'tea' }], ['get_next_step', { plan_id: id }], ['get_next_step', { plan_id: id }, answers],
        ['run', { plan_id: id }], ['run', { plan_id: id }, answers], ['run', { plan_id: id }, { task: {} }], ['submit_step_result', { plan_id: id, step: 'a', result: 2 }, answers], ['update_step', { plan_id: id, step: 'b', action: 'skip' }],
        ['request_user_review', { plan_id: id, step: 'b', summary: 'x' }], ['submit_user_decision', { checkpoint_id: checkpoint, decision: 'approve' }], ['modify_plan', { plan_id: id, action: 'cancel' }],
        ['store_artifact', { plan_id: id, name: 'x', content: 'x' }], ['brew', { leaf: 'x' }], ['brew', { leaf: 'x' }, { _meta: { 'stepwise/taskId': id, 'stepwise/readOnly': false } }], ['state_write', { name: 'x', value: 1 }],
        ['get_plan_context', { plan_id: id, session_id: 'another' }]].map(([tool, args, more]) => ['tools/call', { name: tool, arguments: args, ...more }]);
      const methods = [['prompts/get', { name: 'tea' }], ['tasks/cancel', { taskId: id }], ['stepwise/work', { taskId: id }], session.modern ? ['tasks/update', { taskId: id, ...answers }] : ['tasks/result', { taskId: id, ...answers }]];
      for (const [method, params] of [...tries, ...methods]) {
        session.ask(method, params).catch(() => {}); // tasks/result may wait
        await session.tool('get_plan_status', all ? { plan_id: id } : {});
      }
      await new Promise((resolve) => setTimeout(resolve, 300));
      is([await whole(), await counts(), session.questions], [...before, []]);
    });
  }
  await session.close();
  await agent.close();
}

const whole = await connect('sdk 1.x', { server: command('agent', '--tools', 'all') });
const listing = await connect('sdk 1.x', { user: 'agent' });
const known = [...new Set([...await names(whole), ...await names(listing)])];
await check('many names are known', async () => is([known.length > 50, await failure(listing.call('purge')).then((error) => error.code)], [true, -32602]));
for (const kind of ['sdk 1.x', 'client 2.x pinned']) {
  await use(kind, 'only reading', known, { server: command('agent', '--read-only') });
  await use(kind, 'a reader', known, { server: command('reader') });
}
// what is told does not depend on the generation
await use('sdk 1.x', 'only reading, all functions', known, { server: command('agent', '--read-only', '--tools', 'all'), all: true });
await use('sdk 1.x', 'a role that may not decide', known, { server: command('worker'), acts: true });
await use('sdk 1.x', 'a role that may not decide, all functions', known, { server: command('worker', '--tools', 'all'), all: true, acts: true });
await use('sdk 1.x', 'a role that may', known, { server: command('agent'), acts: true, decides: true });
await use('sdk 1.x', 'a role that may, all functions', known, { server: command('agent', '--tools', 'all'), all: true, acts: true, decides: true });
await finish();
