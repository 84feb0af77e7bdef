// node-redis. Arguments: the major version, and default, protocol-2, protocol-3 or cluster.
'use strict';
const tell = require('../node-story/tell.js');
const [major, as] = process.argv.slice(2);
const { createClient, createCluster } = require(`redis${major}`);

const options = { default: {}, 'protocol-2': { RESP: 2 }, 'protocol-3': { RESP: 3 } }[as];
// A cluster is told which key decides where a command goes.
const send = (c, args) => (as === 'cluster' ? c.sendCommand(/^D[^M]/.test(args[0]) ? args[1] : undefined, false, args) : c.sendCommand(args));

function client(host, port, password, socket) {
  const made = as === 'cluster' ? createCluster({ rootNodes: [{ socket: { host, port } }] }) : createClient({ socket: { host, port, ...socket }, password, ...options });
  made.on('error', () => {}); // those that matter reject a command
  return made;
}

tell({
  version: require(`redis${major}/package.json`).version,
  async connect(host, port, password) {
    const made = client(host, port, password);
    await made.connect();
    return made;
  },
  async refused(host, port, password) {
    const made = client(host, port, password, { reconnectStrategy: false });
    await made.connect();
    await made.ping();
  },
  do: (c, ...args) => send(c, args),
  pipeline: (c, commands) => Promise.all(commands.map((args) => send(c, args))), // one write
  close: (c) => (c.close ? c.close() : c.quit()),
});
