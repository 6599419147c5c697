import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { findBinaries } from './cluster/binaries.ts'
import type { AnswerAs, RequestAs } from './other-user.ts'
import { until } from './until.ts'
import type { Teardown } from './wire/wire.ts'

const found = findBinaries(['unshare', 'nsenter', 'ip'])

/** Why there can be no network namespace here, as the reason of a skipped test. */
const noOwnNetwork: string | false =
  'missing' in found
    ? found.missing
    : spawnSync(found.paths.unshare, ['--net', 'true']).status !== 0 &&
      'only root can make a network namespace'

interface Spawning {
  spawn(command: string, args: string[], options: object, name: string): unknown
}

/** Runs a file of tests as one test, in a network namespace that it has to itself. */
export function inOwnNetwork(t: Spawning, file: string): void {
  const args = ['-u', 'NODE_OPTIONS', 'unshare', '--net', process.execPath, file]
  const options = { skip: noOwnNetwork, timeout: 300_000, env: process.env }
  void t.spawn('env', args, options, 'in a network of its own')
}

/** `ip`, run in the namespace of this process. */
export const ip = (...args: readonly string[]): string =>
  execFileSync('ip', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

/** Whether there is such an interface. */
export const isInterface = (name: string): boolean =>
  spawnSync('ip', ['link', 'show', 'dev', name]).status === 0

/** Prepares the namespace of this process: loopback is up, and there can be dummy interfaces. */
export function enterOwnNetwork(t: Teardown): void {
  ip('link', 'set', 'lo', 'up')
  withDummies(t)
}

/**
 * Where the kernel was built without dummy interfaces, puts an `ip` first in PATH that makes one of
 * another kind in their place. It has an address and drops what is sent through it, as they do.
 */
export function withDummies(t: Teardown): void {
  const probe = ['--net', 'ip', 'link', 'add', 'dev', 'probe', 'type', 'dummy']
  if (spawnSync('unshare', probe).status === 0) return
  const real = 'paths' in found ? found.paths.ip : ''
  withProgram(
    t,
    'ip',
    `case "$*" in
  *"type dummy") set -- "$1" "$2" "$3" "$4" type ifb ;;
  -json*)
    shown=$(${real} "$@") || exit
    echo "$shown" | sed 's/"info_kind":"ifb"/"info_kind":"dummy"/g'
    exit ;;
esac
exec ${real} "$@"`,
  )
}

/** Puts a shell script into PATH, before all else, until the test ends. */
export function withProgram(t: Teardown, name: string, script: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'nodehub-path-'))
  const file = join(folder, name)
  writeFileSync(file, `#!/bin/sh\n${script}\n`)
  chmodSync(file, 0o755)
  withPath(t, [folder, process.env['PATH']].join(delimiter))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
}

/** Sets PATH until the test ends. */
export function withPath(t: Teardown, path: string): void {
  const before = process.env['PATH']
  process.env['PATH'] = path
  t.teardown(() => (process.env['PATH'] = before))
}

/** Asks one URL as a client in Node's own words, and prints the answer. */
const asking = `
const { text } = require('node:stream/consumers')
const { url, ...options } = JSON.parse(process.argv[1])
const { get } = require(url.startsWith('https:') ? 'node:https' : 'node:http')
get(url, { ...options, agent: false }, async (answer) =>
  console.log(JSON.stringify({ status: answer.statusCode, body: await text(answer) }))
).on('error', ({ code }) => console.log(JSON.stringify({ status: 0, body: code })))
`

/**
 * A pod: a network namespace of its own, with a link to the one of this process, through which it
 * sends everything.
 */
export async function startPod(t: Teardown) {
  const holder = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' })
  t.teardown(() => holder.kill('SIGKILL'))
  const path = `/proc/${holder.pid}/ns/net`
  const own = readlinkSync('/proc/self/ns/net')
  await until('the namespace of the pod', () => readlinkSync(path) !== own)
  const inside = (...command: readonly string[]): unknown =>
    execFileSync('nsenter', [`--net=${path}`, ...command])
  ip('link', 'add', 'veth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', `${holder.pid}`)
  ip('address', 'add', '198.19.0.1/24', 'dev', 'veth0')
  ip('link', 'set', 'veth0', 'up')
  inside('ip', 'address', 'add', '198.19.0.2/24', 'dev', 'eth0')
  inside('ip', 'link', 'set', 'eth0', 'up')
  inside('ip', 'route', 'add', 'default', 'via', '198.19.0.1')
  const node = ['env', '-u', 'NODE_OPTIONS', process.execPath, '-e', asking]
  return {
    async get(asked: RequestAs): Promise<AnswerAs> {
      const args = [`--net=${path}`, ...node, JSON.stringify(asked)]
      const { stdout } = await promisify(execFile)('nsenter', args)
      return JSON.parse(stdout) as AnswerAs
    },
  }
}
