#!/usr/bin/env node
// What a global install runs. This file itself must run on any Node that has ES modules: it says
// that a Node is too old, where the hub's own files would be a mistake of syntax.
import { readFileSync } from 'node:fs'

// Without a listener for it, Node opens its debugger on SIGUSR1 to every program of the host.
process.on('SIGUSR1', () => {})

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const oldest = Number(/\d+/.exec(engines.node)[0])
if (Number(process.versions.node.split('.')[0]) >= oldest) import('../dist/src/main.js')
else {
  process.stderr.write(
    `nodehub needs Node ${oldest} or later, and this is Node ${process.versions.node}.\n`,
  )
  process.exitCode = 1
}
