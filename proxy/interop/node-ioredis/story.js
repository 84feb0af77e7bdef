// ioredis. Arguments: the major version, and default, protocol-2 or cluster.
'use strict';
const tell = require('../node-story/tell.js');
const [major, as] = process.argv.slice(2);
const Redis = require(`ioredis${major}`);

const options = as === 'protocol-2' ? { protocol: 2 } : {};

function client(host, port, password, more) {
  const made = as === 'cluster' ? new Redis.Cluster([{ host, port }]) : new Redis({ host, port, password, ...options, ...more });
  made.on('error', () => {}); // those that matter reject a command
  return made;
}

tell({
  version: require(`ioredis${major}/package.json`).version,
  connect: async (host, port, password) => client(host, port, password),
  // A client that may not connect goes on trying; it is made to give up.
  async refused(host, port, password) {
    const made = client(host, port, password, { retryStrategy: null, lazyConnect: true });
    let said;
    made.on('error', (error) => (said = error));
    try {
      await made.connect();
      await made.ping();
    } catch (error) {
      throw said ?? error;
    } finally {
      made.disconnect();
    }
  },
  do: (c, word, ...args) => c.call(word, ...args),
  async pipeline(c, commands) {
    if (as === 'cluster') return Promise.all(commands.map(([word, ...args]) => c.call(word, ...args))); // a pipeline has one node
    const batch = c.pipeline();
    for (const [word, ...args] of commands) batch.call(word, ...args);
    return (await batch.exec()).map(([error, reply]) => {
      if (error) throw error;
      return reply;
    });
  },
  close: (c) => c.quit(),
});
