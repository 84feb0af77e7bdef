// node-redis. Arguments: the major version, and default, protocol-2 or protocol-3.
'use strict';
const tell = require('../node-story/tell.js');
const [major, as] = process.argv.slice(2);
const { createClient } = require(`redis${major}`);

const options = { default: {}, 'protocol-2': { RESP: 2 }, 'protocol-3': { RESP: 3 } }[as];

function client(host, port, password, socket) {
  const made = createClient({ socket: { host, port, ...socket }, password, ...options });
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
  do: (c, ...args) => c.sendCommand(args),
  pipeline: (c, commands) => Promise.all(commands.map((args) => c.sendCommand(args))), // one write
  close: (c) => (c.close ? c.close() : c.quit()),
});
