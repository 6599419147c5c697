import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../kit/until.ts'
import { busyboxPod } from '../pod.ts'
import type { Said, Session } from './session.ts'

/** What a step of the story said, under the command's name. */
export type Heard = readonly [step: string, said: unknown]

const configMap = (data: Record<string, string>): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'settings', labels: { app: 'settings' } },
    data,
  })

const deployment = JSON.stringify({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web' },
  spec: {
    replicas: 0,
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: { containers: [{ name: 'main', image: 'web:1' }] },
    },
  },
})

/**
 * The reads that are asked again offline: what they answer is settled once the objects are made.
 */
const reads: readonly (readonly string[])[] = [
  ['get', 'configmaps'],
  ['get', 'configmap', 'settings', '-o', 'yaml'],
  ['get', 'configmap', 'settings', '-o', 'wide'],
  ['get', 'configmaps', '-l', 'app=settings', '-o', 'name'],
  // One key: kubectl describes several in any order.
  ['describe', 'configmap', 'single'],
  ['get', 'deployment', 'web'],
  ['describe', 'deployment', 'web'],
  ['get', 'namespaces', '--field-selector=metadata.name=kube-system'],
  ['get', 'namespace', 'kube-system', '-o', 'jsonpath={.metadata.name}'],
  ['describe', 'namespace', 'kube-system'],
]

const errors: readonly (readonly string[])[] = [
  ['get', 'configmap', 'absent'],
  ['describe', 'configmap', 'absent'],
  ['get', 'gadgets'],
  ['get', 'pods', '--field-selector=spec.colour=red'],
  ['create', 'configmap', 'settings'],
  ['create', 'configmap', 'Not_A_Name'],
  ['delete', 'configmap', 'absent'],
  ['delete', 'configmap', 'absent', '--ignore-not-found'],
  [
    'patch',
    'configmap',
    'settings',
    '--type=json',
    '--patch=[{"op":"test","path":"/data/colour","value":"no"}]',
  ],
  ['patch', 'configmap', 'settings', '--patch={"data":[]}'],
  ['get', '--raw', '/nowhere'],
  ['logs', 'absent'],
  ['exec', 'absent', '--', 'true'],
]

/**
 * Creates, changes and reads objects the way users do, and errs the way they do. Leaves `settings`,
 * `single` and `web` in the namespace, for the reads.
 */
export async function writeAndErr(session: Session): Promise<Heard[]> {
  const heard: Heard[] = []
  const run = async (args: readonly string[], more: { input?: string; editor?: string } = {}) =>
    void heard.push([args.join(' '), await session.run(args, more)])

  await run(['apply', '-f', '-'], { input: configMap({ colour: 'red', size: 'small' }) })
  await run(['apply', '-f', '-'], { input: configMap({ colour: 'green', size: 'small' }) })
  await run(['apply', '-f', '-'], { input: configMap({ colour: 'green', size: 'small' }) })
  await run(['diff', '-f', '-'], { input: configMap({ colour: 'green', size: 'small' }) })
  await run(['apply', '--server-side', '--field-manager=other', '-f', '-'], {
    input: configMap({ colour: 'blue' }),
  })
  await run(['apply', '-f', '-'], { input: deployment })
  await run(['scale', 'deployment', 'web', '--replicas=0'])
  await run(['patch', 'configmap', 'settings', '--patch={"data":{"size":"large"}}'])
  await run(['patch', 'configmap', 'settings', '--type=merge', '--patch={"data":{"size":null}}'])
  await run(['label', 'configmap', 'settings', 'tier=front'])
  await run(['annotate', 'deployment', 'web', 'note=read-me'])
  await run(['replace', '-f', '-'], {
    input: configMap({ colour: 'white' }).replace(
      '"metadata":{',
      '"metadata":{"resourceVersion":"1",',
    ),
  })
  await run(edit, { editor: editor(session, 'plain', [paint('yellow')]) })
  await run(edit, { editor: editor(session, 'meanwhile', [meanwhile, paint('orange')]) })
  await run(edit, {
    editor: editor(session, 'stale', [meanwhile, onceOnly, ageVersion, paint('black')]),
  })
  await run(edit, { editor: editor(session, 'none', []) })
  await run(['create', 'configmap', 'single', '--from-literal=only=one'])
  await run(['create', 'configmap', 'short-lived', '--from-literal=a=b'])
  await run(['delete', 'configmap', 'short-lived'])
  for (const args of errors) await run(args)
  for (const args of [
    ['api-resources', '--api-group=apps'],
    ['api-resources', '--namespaced=false', '-o', 'name'],
    ['api-versions'],
    ['explain', 'deployment.spec.strategy'],
    ['explain', 'pods', '--recursive'],
    ['explain', 'pods.nonsense'],
    ['auth', 'can-i', 'create', 'pods'],
    ['version', '-o', 'json'],
  ])
    await run(args)
  return heard
}

const edit = ['edit', 'configmap', 'settings'] as const

/** A line of a shell script that edits `$1`, given who edits. */
type EditStep = (session: Session) => string

const replacing = (pattern: string): string =>
  `sed '${pattern}' "$1" > "$1.new" && mv "$1.new" "$1"`

/** What the user wants. */
const paint =
  (colour: string): EditStep =>
  () =>
    replacing(`s/colour: .*/colour: ${colour}/`)

/** Somebody changes another key while the editor is open. */
const meanwhile: EditStep = (session) =>
  session.commandLine(['patch', 'configmap', 'settings', '--patch={"data":{"size":"changed"}}'])

/**
 * With the version written out in the buffer, kubectl asks for a change of that version alone, and
 * is refused.
 */
const ageVersion: EditStep = () => replacing('s/resourceVersion: .*/resourceVersion: "1"/')

/**
 * After a refusal kubectl opens the editor again, with the reason on top: then the user gives up.
 */
const onceOnly: EditStep = () => `grep -q 'has been modified' "$1" && exit 0`

function editor(session: Session, name: string, steps: readonly EditStep[]): string {
  const path = join(session.folder, `${name}-editor.sh`)
  const lines = ['#!/bin/sh', ...steps.map((step) => step(session)), '']
  writeFileSync(path, lines.join('\n'), { mode: 0o755 })
  return path
}

/** Asks again what has been asked before. */
export async function read(session: Session): Promise<(readonly [step: string, said: Said])[]> {
  const heard: (readonly [string, Said])[] = []
  for (const args of reads) heard.push([args.join(' '), await session.run(args)])
  return heard
}

/** Watches while things change; the lines a user sees. */
export async function watch(session: Session): Promise<Heard> {
  await session.run(['create', 'configmap', 'watched', '--from-literal=a=b'])
  const lines = (text: string): number => text.trimEnd().split('\n').length
  const { said } = await session.runUntil(
    ['get', 'configmap', 'watched', '--watch', '--output-watch-events'],
    (stdout) => lines(stdout) >= 2,
    async (_, heardSoFar) => {
      await session.run(['label', 'configmap', 'watched', 'seen=yes'])
      await session.run(['delete', 'configmap', 'watched'])
      await until('the deletion to be shown', () => heardSoFar().includes('DELETED'))
    },
  )
  return ['get --watch', said]
}

export const talkerName = 'talker'

/** A pod that counts in its log and serves its own name. */
export const talker = (nodeName: string): object =>
  busyboxPod(talkerName, {
    nodeName,
    command: [
      'sh',
      '-c',
      'mkdir /www; echo talking > /www/index.html; httpd -p 8080 -h /www; n=0; while :; do n=$((n+1)); echo line $n; sleep 1; done',
    ],
  })

/** Speaks with the talker, which runs in a namespace of its own. */
export async function talk(session: Session): Promise<Heard[]> {
  const heard: Heard[] = []
  const run = async (args: readonly string[], input = '') =>
    void heard.push([args.join(' '), await session.run(args, { input })])
  await run(['logs', talkerName, '--limit-bytes=13'])
  await run(['exec', talkerName, '--', 'sh', '-c', 'echo out; echo err >&2; exit 7'])
  await run(['exec', '-i', talkerName, '--', 'cat'], 'there\nand back\n'.repeat(2000))
  await run(['exec', talkerName, '--', 'no-such-program'])
  await run(['exec', talkerName, '-c', 'absent', '--', 'true'])
  const followed = await session.runUntil(
    ['logs', '-f', talkerName],
    (stdout) => (stdout.match(/\n/g)?.length ?? 0) >= 3,
    (stdout) => Promise.resolve(stdout.split('\n').slice(0, 2)),
  )
  heard.push(['logs -f', followed.made])
  const forwarded = await session.runUntil(
    ['port-forward', `pod/${talkerName}`, ':8080', '--address=127.0.0.1'],
    (stdout) => stdout.includes('Forwarding from'),
    (stdout) => servedAt(stdout),
  )
  heard.push(['port-forward', forwarded.made])
  return heard
}

async function servedAt(stdout: string): Promise<unknown> {
  const [, port] = /Forwarding from 127\.0\.0\.1:(\d+)/.exec(stdout) ?? []
  return until('the forwarded port to answer', async () => {
    const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })
    return { status: response.status, body: await response.text() }
  })
}
