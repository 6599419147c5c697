#!/usr/bin/env node
// What a global install runs. This file itself must run on any Node that has ES modules: it says
// that a Node is too old, where the hub's own files would be a mistake of syntax.
import { existsSync, readFileSync } from 'node:fs'

// Without a listener for it, Node opens its debugger on SIGUSR1 to every program of the host.
process.on('SIGUSR1', () => {})

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const oldest = Number(/\d+/.exec(engines.node)[0])
const main = new URL('../dist/src/main.js', import.meta.url)
const isNewEnough = Number(process.versions.node.split('.')[0]) >= oldest
if (!isNewEnough)
  fail(`nodehub needs Node ${oldest} or later, and this is Node ${process.versions.node}.`)
else if (existsSync(main)) import('../dist/src/main.js')
else
  fail(
    'nodehub is not built here: use npm start --silent -- COMMAND, or build it by npm run build.',
  )

function fail(why) {
  process.stderr.write(`${why}\n`)
  process.exitCode = 1
}
