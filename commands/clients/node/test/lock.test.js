// Tests against a daemon: node lock.test.js ADDRESS, or REDLOCKD_ADDR.
'use strict';
const { test, after, before } = require('node:test');
const assert = require('node:assert');
const { once } = require('node:events');
const { createClient } = require('redis');
const { lock, LockTaken, LockLost } = require('..');

const url = `redis://${process.argv[2] ?? process.env.REDLOCKD_ADDR ?? '127.0.0.1:7379'}`;
const other = createClient({ url });
const ask = (...words) => other.sendCommand(words.map(String));
const release = (held) => held[Symbol.asyncDispose]();
const lost = async (held) => { if (!held.signal.aborted) await once(held.signal, 'abort'); };

before(() => other.connect());
after(() => other.close());
process.on('exit', (code) => { if (code === 0) process.stdout.write('passed\n'); });

test('holds until its disposal, with a rising fence', async () => {
  const fences = [];
  for (let i = 0; i < 2; i++) {
    const held = await lock('node:holds', { url, ttl: 10000 });
    fences.push(held.fence);
    held.check();
    assert.strictEqual(await ask('DLOCK', 'node:holds', 1000), null);
    await release(held);
  }
  assert.ok(fences[0] > 1e15 && fences[1] > fences[0], fences);
  assert.notStrictEqual(await ask('DLOCK', 'node:holds', 1000), null);
});

test('reports a lock that is taken', async () => {
  await ask('DLOCK', 'node:taken', 30000);
  for (const wait of [1, 0]) await assert.rejects(lock('node:taken', { url, wait }), LockTaken);
});

test('signals the loss', async () => {
  const held = await lock('node:lost', { url, ttl: 10000 });
  await ask('DFORCE', 'node:lost');
  await lost(held);
  assert.ok(held.signal.reason instanceof LockLost);
  assert.throws(held.check, LockLost);
  await release(held);
});

test('ends at its longest', async () => {
  const held = await lock('node:longest', { url, ttl: 10000, longest: 300 });
  await lost(held);
  await release(held);
});

test('extend lengthens the lock', async () => {
  const held = await lock('node:extend', { url, ttl: 10000 });
  const validity = await held.extend(25000);
  assert.ok(validity > 10000 && validity <= 25000, validity);
  assert.ok(await ask('PTTL', 'node:extend') > 10000);
  await ask('DFORCE', 'node:extend');
  await assert.rejects(held.extend(), LockLost);
  await release(held);
});
