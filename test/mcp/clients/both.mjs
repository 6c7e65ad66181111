// What clients of both generations do: list, create, loop, gates and reviews by elicitation, prompts, resources, subscriptions, errors,
// cancelling, progress, two clients on one plan.

import { ListPromptsResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { KINDS, check, command, connect, failure, finish, is, like, plan, sql, until } from './lib.mjs';

const accept = (content) => async () => ({ action: 'accept', content });

// Everything that one kind of client does.
async function use(kind) {
  const name = (what) => `${kind}: ${what}`;
  const main = await connect(kind);

  await check(name('negotiates its version'), async () => {
    is(main.client.getNegotiatedProtocolVersion?.() ?? main.heard[0].result.protocolVersion, main.version);
    is(main.client.getServerVersion().name, 'pg_stepwise');
    like(main.client.getInstructions(), /get_next_step/);
  });

  await check(name('lists tools that its schema accepts'), async () => {
    const { tools } = await main.client.listTools();
    is(tools.length, 13);
    is(tools.find((tool) => tool.name === 'brew').inputSchema.required, ['leaf']);
    is(tools.filter((tool) => tool.name !== 'brew' && Object.keys(tool.annotations).length < 4), []);
  });

  await check(name('works through a plan'), async () => {
    const id = await plan(main, 'loop', [{ name: 'one', instructions: 'Do one', binding: 'x' }, { name: 'two', instructions: 'Do ${bindings.x.n}' }]);
    const first = await main.tool('get_next_step', { plan_id: id });
    is([first.status, first.name], ['step_ready', 'one']);
    const second = await main.tool('submit_step_result', { step_id: first.stepId, result: { n: 7 } });
    is([second.submitted.stepStatus, second.next.instructions], ['completed', 'Do 7']);
    const end = await main.tool('submit_step_result', { plan_id: id, step: 'two', result: 'done' });
    is(end.next.status, 'plan_complete');
    is((await main.tool('get_plan_status', { plan_id: id })).status, 'completed');
  });

  await check(name('gets the paused answer if it cannot ask'), async () => {
    const id = await plan(main, 'silent', [{ name: 'ask', prompt: 'Which colour?' }]);
    is((await main.tool('get_next_step', { plan_id: id })).status, 'awaiting_review');
  });

  await check(name('asks a person for the answer to a prompt'), async () => {
    const asking = await connect(kind, { answer: accept({ response: 'blue' }) });
    const id = await plan(asking, 'prompt', [{ name: 'ask', prompt: 'Which colour?' }, { name: 'paint', instructions: 'Paint it ${steps.ask.outputs.response}' }]);
    is((await asking.tool('get_next_step', { plan_id: id })).instructions, 'Paint it blue');
    is(asking.questions.length, 1);
    like(asking.questions[0].message, /Which colour\?/);
    await asking.close();
  });

  await check(name('asks a person for a decision, and again after a change'), async () => {
    const decisions = ['modify', 'approve'];
    const asking = await connect(kind, { answer: async () => ({ action: 'accept', content: { decision: decisions.shift(), feedback: 'longer' } }) });
    const id = await plan(asking, 'review', [{ name: 'write', instructions: 'Write ${variables.what ?? "a page"}', review: { when: 'after', summary: 'Good?' } }]);
    await asking.tool('get_next_step', { plan_id: id });
    const back = await asking.tool('submit_step_result', { plan_id: id, step: 'write', result: 'a' });
    is([back.next.name, back.next.attempt, back.next.feedback], ['write', 2, 'longer']);
    is((await asking.tool('submit_step_result', { plan_id: id, step: 'write', attempt: 2, result: 'aa' })).next.status, 'plan_complete');
    like(asking.questions[0].message, /^Good\?[^]*Write a page[^]*Result: "a"/);
    is(asking.questions.map((question) => question.requestedSchema.properties.decision.enum), Array(2).fill(['approve', 'modify', 'reject', 'skip']));
    await asking.close();
  });

  await check(name('asks a person before a step, before a tool, and when the agent wants it'), async () => {
    const asking = await connect(kind, { answer: accept({ decision: 'approve', answer_1: 'very' }) });
    const about = () => asking.questions.splice(0).map((question) => question.message.split('\n')[0]);
    const id = await plan(asking, 'gates', [{ name: 'write', instructions: 'Write', review: { when: 'before', summary: 'Begin?' } },
      { name: 'brew', tool: 'brew', arguments: { leaf: 'mint' }, review: { when: 'before', summary: 'Brew?' } }, { name: 'print', instructions: 'Print' }]);
    is([(await asking.tool('get_next_step', { plan_id: id })).name, about()], ['write', ['Begin?']]);
    await asking.tool('submit_step_result', { plan_id: id, step: 'write', result: 1, next: false });
    is([(await asking.tool('run', { plan_id: id })).pause_reason.type, about()], ['clientTool', ['Brew?']]);
    is((await asking.tool('get_next_step', { plan_id: id })).name, 'print');
    const after = await asking.tool('request_user_review', { plan_id: id, step: 'print', summary: 'Look', questions: ['How good?'], result: 'a page' });
    is([after.submitted?.stepStatus ?? after.stepStatus, about()], ['completed', ['Look']]);
    is(await sql(`SELECT string_agg(concat_ws(' ', detail ->> 'action', detail -> 'answers'), ', ' ORDER BY id) FROM stepwise.audit WHERE plan_id = '${id}' AND event = 'user_reviewed'
      AND detail ->> 'action' <> 'review_requested'`), 'approve null, approve null, approve ["very"]');
    await asking.close();
  });

  await check(name('goes on if another client has answered first'), async () => {
    let id;
    const asking = await connect(kind, { answer: async () => {
      await main.tool('submit_user_decision', { checkpoint_id: await sql(`SELECT checkpoint_id FROM stepwise.checkpoints WHERE plan_id = '${id}'`), response: 'green' });
      return { action: 'accept', content: { response: 'blue' } };
    } });
    id = await plan(asking, 'answered', [{ name: 'ask', prompt: 'Which colour?' }, { name: 'paint', instructions: 'Paint it ${steps.ask.outputs.response}' }]);
    is((await asking.tool('get_next_step', { plan_id: id })).instructions, 'Paint it green');
    await asking.close();
  });

  await check(name('leaves a checkpoint open that a person declines'), async () => {
    const asking = await connect(kind, { answer: async () => ({ action: 'decline' }) });
    const id = await plan(asking, 'declined', [{ name: 'ask', prompt: 'Really?' }]);
    is((await asking.tool('run', { plan_id: id })).task_status, 'input_required');
    is(asking.questions.length, 1);
    is(await sql(`SELECT count(*) FROM stepwise.checkpoints WHERE plan_id = '${id}'`), '1');
    await asking.close();
  });

  await check(name('does not ask where its role may not decide'), async () => {
    const worker = await connect(kind, { user: 'worker', answer: accept({ decision: 'approve' }) });
    const id = await plan(worker, 'guarded', [{ name: 'deploy', instructions: 'Deploy', review: { when: 'before', summary: 'Deploy?' } }]);
    is((await worker.tool('get_next_step', { plan_id: id })).status, 'awaiting_review');
    is(worker.questions, []);
    is((await worker.client.listTools()).tools.some((tool) => tool.name === 'submit_user_decision'), false);
    await worker.close();
  });

  await check(name('starts a workflow as a prompt'), async () => {
    const { prompts } = await main.client.listPrompts();
    is(prompts.map((prompt) => [prompt.name, prompt.arguments.map((argument) => argument.name).sort()]), [['tea', ['cups', 'leaf']]]);
    const got = await main.client.getPrompt({ name: 'tea', arguments: { leaf: 'darjeeling', cups: '2' } });
    is(got._meta.task_status, 'input_required');
    is(got._meta.pause_reason.type, 'inputRequired');
    like(got.messages.map((message) => message.content.text).join('\n'), /darjeeling[^]*Milk in 2 cups\?/);
    is((await failure(main.client.getPrompt({ name: 'tea', arguments: { cups: 'many' } }))).code, -32602);
  });

  if (main.modern) {
    await check(name('asks a person while a prompt starts'), async () => {
      const asking = await connect(kind, { answer: accept({ response: 'a little' }) });
      const got = await asking.client.getPrompt({ name: 'tea', arguments: {} });
      is([got._meta.task_status, asking.questions.length], ['completed', 1]);
      await asking.close();
    });

    await check(name('hears of new prompts, tools and plans'), async () => {
      const heard = new Set();
      const lists = ['tools', 'prompts', 'resources'].map((list) => `notifications/${list}/list_changed`);
      for (const method of lists) main.client.setNotificationHandler(method, () => { heard.add(method); });
      const listening = await main.client.listen({ toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true });
      await sql(`SELECT stepwise.define_workflow('{"name": "passing", "steps": [{"name": "a"}]}'),
        stepwise.register_tool('passing', 'brew(jsonb)', expose => true), stepwise.create_plan('passing', 'g', '[{"name": "a"}]')`);
      await until(() => lists.every((method) => heard.has(method)));
      await listening.close();
      await sql(`SELECT stepwise.drop_workflow('passing'), stepwise.drop_tool('passing')`);
    });
  }

  await check(name('pages through all plans'), async () => {
    for (let n = 0; n < 21; n++) await plan(main, `page ${n}`, [{ name: 'a', instructions: 'Do it' }]);
    const uris = [];
    let cursor;
    do {
      const page = await main.client.listResources({ ...(cursor !== undefined && { cursor }) });
      uris.push(...page.resources.map((resource) => resource.uri));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    is(new Set(uris).size, uris.length);
    is(uris.filter((uri) => /plan\/[^/]*$/.test(uri)).length, Number(await sql('SELECT count(*) FROM stepwise.plan WHERE parent_step_id IS NULL')));
  });

  await check(name('pages through all prompts'), async () => {
    const many = (what) => sql(`SELECT count(stepwise.${what}) FROM generate_series(1, 250) AS n`);
    await many(`define_workflow(jsonb_build_object('name', 'many_' || n, 'steps', '[{"name": "a"}]'::jsonb))`);
    const names = [];
    const sizes = [];
    let cursor;
    do {
      const page = await main.client.request({ method: 'prompts/list', params: { ...(cursor !== undefined && { cursor }) } }, ...(main.old ? [ListPromptsResultSchema] : []));
      names.push(...page.prompts.map((prompt) => prompt.name));
      sizes.push(page.prompts.length);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    is([names.length, new Set(names).size, sizes], [251, 251, [100, 100, 51]]);
    is((await failure(main.ask('prompts/list', { cursor: 'nonsense' }))).code, -32602);
    await many(`drop_workflow('many_' || n)`);
  });

  await check(name('reads all tools, and those that read'), async () => {
    const all = await connect(kind, { server: command('owner', '--tools', 'all') });
    const names = (await all.client.listTools()).tools.map((tool) => tool.name);
    is(['advance', 'why', 'verify_audit', 'brew'].filter((tool) => !names.includes(tool)), []);
    await all.close();
    const reading = await connect(kind, { server: command('owner', '--read-only') });
    const { tools } = await reading.client.listTools();
    is(tools.length > 0 && tools.every((tool) => tool.annotations.readOnlyHint), true);
    is((await reading.tool('get_plan_status', {})).plans.length > 0, true);
    await failure(reading.tool('create_plan', { name: 'x', goal: 'x', steps: [{ name: 'a' }] }));
    await reading.close();
  });

  await check(name('completes what was used before'), async () => {
    const { completion } = await main.client.complete({ ref: { type: 'ref/prompt', name: 'tea' }, argument: { name: 'leaf', value: 'darj' } });
    is(completion.values, ['darjeeling']);
  });

  await check(name('reads plans and documents as resources'), async () => {
    const id = await plan(main, 'read', [{ name: 'one', instructions: 'Do one' }]);
    await main.tool('store_artifact', { plan_id: id, name: 'a note', content: 'Remember the milk' });
    const uris = (await main.client.listResources()).resources.map((resource) => resource.uri);
    is([`stepwise://plan/${id}`, `stepwise://plan/${id}/artifact/a%20note`].filter((uri) => !uris.includes(uri)), []);
    is((await main.client.listResourceTemplates()).resourceTemplates.length, 4);
    const { contents } = await main.client.readResource({ uri: `stepwise://plan/${id}` });
    is(contents.map((content) => content.mimeType), ['application/json', 'text/markdown']);
    is(JSON.parse(contents[0].text).planId, id);
    is((await main.client.readResource({ uri: `stepwise://plan/${id}/artifact/a%20note` })).contents[0].text, 'Remember the milk');
    is((await failure(main.client.readResource({ uri: 'stepwise://plan/none' }))).code, main.old ? -32002 : -32602);
  });

  await check(name('hears of changes to a plan'), async () => {
    const id = await plan(main, 'watched', [{ name: 'one', instructions: 'Do one' }]);
    const uri = `stepwise://plan/${id}`;
    const listening = main.modern ? await main.client.listen({ resourceSubscriptions: [uri] }) : await main.client.subscribeResource({ uri });
    if (main.modern) is(listening.honoredFilter.resourceSubscriptions, [uri]);
    await sql(`SELECT stepwise.get_next_step('${id}')`);
    await until(() => main.updated.includes(uri));
    if (main.modern) await listening.close(); else await main.client.unsubscribeResource({ uri });
    main.updated.length = 0;
    await sql(`SELECT stepwise.cancel_plan('${id}')`);
    await main.client.listPrompts();
    is(main.updated, []);
  });

  await check(name('gets errors that say what to do'), async () => {
    like(await main.error('get_next_step', { plan_id: '00000000-0000-7000-8000-000000000001' }), /^SW\d{3}: .*\n(DETAIL: .*\n)?HINT: /);
    like(await main.error('create_plan', { name: 'x', goal: 'x', steps: [{ name: 'a', dependsOn: ['b'] }] }), /^SW\d{3}: /);
    like(await main.error('brew', { leaf: 'none' }), /there is no leaf/);
    like(await main.error('brew', {}), /leaf/);
    is((await failure(main.call('no_such_tool'))).code, -32602);
  });

  await check(name('cancels a call, and goes on'), async () => {
    const stop = new AbortController();
    const running = failure(main.call('brew', { leaf: 'assam', seconds: 60 }, { request: { signal: stop.signal } }));
    const sleeping = `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`;
    await until(async () => await sql(sleeping) === '1');
    is((await main.tool('brew', { leaf: 'mint' })).cup, 'mint');
    stop.abort();
    await running;
    await until(async () => await sql(sleeping) === '0');
    is((await main.tool('brew', { leaf: 'mint' })).cup, 'mint');
  });

  await check(name('hears of progress'), async () => {
    const id = await plan(main, 'progress', [1, 2, 3].map((n) => ({ name: `s${n}`, tool: 'brew', arguments: { leaf: 'x', seconds: 0.2 } })));
    const heard = [];
    await main.tool('run', { plan_id: id }, { request: { onprogress: (progress) => heard.push(progress.progress) } });
    is(heard.length > 0 && heard.every((n, i) => i === 0 || n > heard[i - 1]), true);
  });

  await check(name('shares a plan with another client'), async () => {
    const other = await connect(kind === 'sdk 1.x' ? 'client 2.x pinned' : 'sdk 1.x');
    const id = await plan(main, 'shared', Array.from({ length: 12 }, (_, n) => ({ name: `s${n}`, instructions: 'Do it', dependsOn: [] })));
    const start = (session, worker) => session.tool('get_next_step', { plan_id: id, worker });
    const work = async (session, worker, first) => {
      const done = [];
      let step = first;
      while (step.status === 'step_ready') {
        done.push(step.name);
        step = (await session.tool('submit_step_result', { step_id: step.stepId, attempt: step.attempt, worker, result: worker })).next;
      }
      return done;
    };
    const [a, b] = await Promise.all([start(main, 'me'), start(other, 'them')]);
    const [mine, theirs] = await Promise.all([work(main, 'me', a), work(other, 'them', b)]);
    is([...new Set([...mine, ...theirs])].length, 12);
    is(mine.length + theirs.length, 12);
    is([mine[0], theirs[0]].sort(), ['s0', 's1']);
    is(await sql(`SELECT status FROM stepwise.plan WHERE id = '${id}'`), 'completed');
    await other.close();
  });

  await main.close();
}

for (const kind of Object.keys(KINDS)) await use(kind);
await finish();
