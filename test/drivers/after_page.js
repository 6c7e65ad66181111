// Runs after the blocks of doc/drivers.md: transaction() repeats what could not be serialized.
await client.query('SET default_transaction_isolation = serializable');
const other = new Client();
await other.connect();
const race = await call(client, 'create_plan', { name: 'race', goal: 'Two at once',
  steps: '[{"name": "a", "dependsOn": []}, {"name": "b"}]' });
const [a, b] = [await call(client, 'get_next_step', { plan_id: race.planId }), await call(client, 'get_next_step', { plan_id: race.planId })];
let tried = 0;
const answer = await transaction(client, async () => {
  await client.query('SELECT count(*) FROM stepwise.step WHERE plan_id = $1', [race.planId]);
  if (++tried === 1) await call(other, 'submit_step_result', { step_id: b.stepId, result: '1' });
  return call(client, 'submit_step_result', { step_id: a.stepId, result: '1' });
});
console.log(tried, answer.planStatus);  // => 2 completed

// It gives up in the end, and does not repeat other errors.
const raise = (code) => client.query(`DO $$ BEGIN RAISE EXCEPTION USING errcode = '${code}'; END $$`);
for (const code of ['40P01', '22012']) {
  tried = 0;
  await transaction(client, () => { tried++; return raise(code); }, 3).catch((error) => console.log(error.code, tried));
}
// => 40P01 3
// => 22012 1

// An answer in text is what it is in the database, whether it was prepared or not.
const query = { text: 'SELECT stepwise.task_variables($1)::text AS text', values: [race.planId] };
const { text } = (await client.query(query)).rows[0];
for (const name of [undefined, 'variables']) {
  const sent = await client.query({ name, text: 'SELECT stepwise.task_variables($1)', values: [race.planId], types: { getTypeParser: () => (value) => value } });
  console.log(sent.fields[0].dataTypeID, sent.rows[0].task_variables === text);
}
// => 3802 true
// => 3802 true
await Promise.all([client, other, listener].map((each) => each.end()));
