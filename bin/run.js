#!/usr/bin/env node
// Runs one of the project's jobs on the Node that devDependencies pin, whatever Node the machine
// has; installs what is missing first. This file itself must run on any Node that still has ES
// modules.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

// Without a listener for it, Node opens its debugger on SIGUSR1 to every program of the host.
process.on('SIGUSR1', () => {})

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const tools = join(root, 'node_modules', '.bin')
const node = join(tools, 'node')

/**
 * Whether node_modules holds what package-lock.json names: npm writes the state of an install
 * beside the packages, and where a copy of node_modules shares that file with its original by a
 * hard link, the state of the other.
 */
function installed() {
  const state = join(root, 'node_modules', '.package-lock.json')
  if (!existsSync(state) || !existsSync(node)) return false
  if (spawnSync(node, ['--version']).status !== 0) return false
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
  const present = JSON.parse(readFileSync(state, 'utf8')).packages
  return Object.entries(wanted).every(
    ([path, { version, optional }]) =>
      path === '' ||
      optional ||
      (present[path]?.version === version && existsSync(join(root, path))),
  )
}

function run(command, args) {
  const { status, signal, error } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: `${tools}:${process.env.PATH}` },
  })
  if (error) throw error
  if (signal) process.kill(process.pid, signal)
  if (status !== 0) process.exit(status ?? 1)
}

if (!installed()) {
  process.stderr.write('nodehub: installing what is missing (once)\n')
  // Not `npm ci`: it refuses a lock file in which a package of another platform is missing that its
  // registry does not have.
  run('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'])
}

/** Whether tap's class of tests has the plugins of .taprc: to compile it takes seconds. */
function built() {
  const tap = join(root, 'node_modules', '@tapjs', 'test')
  const test = join(tap, 'test-built', 'dist', 'esm', 'index.js')
  if (!existsSync(test)) return false
  const plugins = (path, pattern) => readFileSync(path, 'utf8').match(pattern) ?? []
  const leftOut = plugins(join(root, '.taprc'), /(?<=!)@tapjs\/[\w-]+/g)
  const all = plugins(join(tap, 'dist', 'esm', 'default-plugins.js'), /@tapjs\/[\w-]+/g)
  const has = plugins(test, /(?<=^import .*")@tapjs\/[\w-]+(?=")/gm)
  return has.join() === all.filter((name) => !leftOut.includes(name)).join()
}

function tests(tier) {
  if (!built()) run(join(tools, 'tap'), ['build'])
  run(node, [join(root, 'test', 'tiers', 'run.ts'), tier, ...args])
}

function build() {
  run(join(tools, 'tsc'), ['-p', 'tsconfig.build.json'])
  run(node, [join(root, 'bin', 'bundle.js')])
}

/**
 * The arguments without a bootstrap token, which goes to the environment: other users of the host
 * read the list of processes. npm and its shell show their own arguments for as long as they run.
 */
function withoutToken(words) {
  const isToken = (word) => /^--?join[-_]token(=|$)/.test(word)
  const at = words.findLastIndex(isToken)
  const word = words[at] ?? ''
  const token = word.includes('=') ? word.slice(word.indexOf('=') + 1) : words[at + 1]
  if (at < 0 || token === undefined) return words
  process.title = 'nodehub'
  process.env.NODEHUB_JOIN_TOKEN = token
  if (process.env.npm_lifecycle_event !== undefined)
    process.stderr.write(
      'nodehub: npm shows the bootstrap token in the list of processes: give it in NODEHUB_JOIN_TOKEN in place of --join-token\n',
    )
  const isValue = (word = '') => isToken(word) && !word.includes('=')
  return words.filter((word, i) => !isToken(word) && !isValue(words[i - 1]))
}

const [job, ...args] = withoutToken(process.argv.slice(2))
const jobs = {
  main: () => {
    // To compile the sources anew takes each start a fifth of its processor time.
    process.env.NODE_COMPILE_CACHE ??= join(root, 'node_modules', '.cache', 'started')
    run(node, [
      '--disable-sigusr1',
      join(root, 'src', 'main.ts'),
      ...(args.length > 0 ? args : ['demo']),
    ])
  },
  test: () => tests('fast'),
  'test:cluster': () => tests('cluster'),
  'test:long': () => run(node, [join(root, 'test', 'tiers', 'long.ts'), ...args]),
  check: () => {
    run(join(tools, 'tsc'), [])
    run(join(tools, 'oxlint'), ['--type-aware', '--deny-warnings'])
    run(join(tools, 'prettier'), ['--check', '--log-level', 'warn', '.'])
    run(join(tools, 'knip'), [])
    run(node, [join(root, 'test', 'floors.ts')])
    run(node, [join(root, 'test', 'bars.ts')])
  },
  fuzz: () => run(node, [join(root, 'test', 'fuzz', 'main.ts'), ...args]),
  crash: () => run(node, [join(root, 'test', 'crash', 'main.ts'), ...args]),
  soak: () => run(node, [join(root, 'test', 'model', 'main.ts'), ...args]),
  metrics: () => run(node, [join(root, 'test', 'metrics', 'still', 'main.ts'), ...args]),
  bench: () => run(node, [join(root, 'bench', 'run.ts'), ...args]),
  'bench-store': () => run(node, [join(root, 'bench', 'store.ts'), ...args]),
  outages: () => run(node, [join(root, 'bench', 'outages.ts'), ...args]),
  attack: () => run(node, [join(root, 'bench', 'attack', 'run.ts'), ...args]),
  mutants: () => run(node, [join(root, 'test', 'mutants', 'main.ts'), ...args]),
  coverage: () => run(node, [join(root, 'test', 'mutants', 'main.ts'), '--coverage', ...args]),
  build,
  package: () => {
    build()
    run(node, [join(root, 'packaging', 'main.ts'), ...args])
  },
}
if (!Object.hasOwn(jobs, job)) {
  process.stderr.write(`usage: run.js ${Object.keys(jobs).join('|')} [ARGUMENT...]\n`)
  process.exit(2)
}
jobs[job]()
