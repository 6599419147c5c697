import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { Secret } from '../../src/base/secret.ts'
import { Connections } from '../../src/http/client/connections.ts'
import { defaultTimings } from '../../src/http/client/connection-timings.ts'
import { nameOf, type Watching } from '../kit/client.ts'
import {
  administrator,
  type ControlPlane,
  noControlPlane,
  startControlPlane,
} from '../kit/control-plane.ts'
import { startTestHub, type TestHub } from '../kit/hub.ts'
import { link } from '../kit/wire/link.ts'

t.setTimeout(240_000)

const skip = noControlPlane() ?? false

const configMaps = '/api/v1/namespaces/default/configmaps'

const nameOfNth = (nth: number): string => `config-${nth}`

void t.test(
  'F17: 600 watches of one kubelet each get their event, over at most 4 connections to a real API server',
  { skip, timeout: 240_000 },
  async (t) => {
    const open = await watchedBy600(t, ['--http2-max-streams-per-connection=250'])
    t.ok(open >= 3 && open <= 4, `${open} connections`)
  },
)

void t.test(
  '600 watches each get their event from an API server with GOAWAYs',
  { skip, timeout: 240_000 },
  async (t) => {
    // The most it takes. Its limit of streams is 100 by default.
    const open = await watchedBy600(t, ['--goaway-chance=0.02'])
    t.ok(open >= 7, `${open} connections`)
  },
)

void t.test(
  'F11: a frozen API server becomes unhealthy, and its watches over HTTP/2 end',
  { skip },
  async (t) => {
    const plane = await startControlPlane(t)
    const hub = await hubBefore(t, plane)
    await hub.online()
    const kubelet = hub.as('kubelet')
    const watches = await inBatches(60, () => kubelet.watch(configMaps, { resourceVersion: '0' }))
    t.ok(await hub.metric(`nodehub_upstream_connections{upstream="${plane.url}",protocol="h2"}`))
    const { daemon } = plane.first
    daemon.freeze()
    t.teardown(() => daemon.thaw())
    await Promise.all(watches.map((watch) => watch.end()))
    t.equal(hub.hub.online(), false)
  },
)

void t.test(
  'F11: pings detect a half-open link to an API server, and the next watch gets a new connection',
  { skip },
  async (t) => {
    const plane = await startControlPlane(t)
    const way = await link(t, Number(new URL(plane.url).port))
    const { certificate, key } = plane.credentials(administrator)
    const connections = new Connections(
      {
        ca: readFileSync(plane.pki.ca.certificate, 'utf8'),
        certificate: {
          chain: readFileSync(certificate, 'utf8'),
          key: new Secret(readFileSync(key, 'utf8')),
        },
        files: [],
      },
      { ...defaultTimings, pingMs: 100, pongMs: 500 },
    )
    t.teardown(() => connections[Symbol.asyncDispose]())
    const origin = `https://127.0.0.1:${way.port}`
    const watch = (): { begun: Promise<number>; broken: Promise<Error> } => {
      const { promise: begun, resolve: onBegun } = Promise.withResolvers<number>()
      const { promise: broken, resolve: onBroken } = Promise.withResolvers<Error>()
      const request = { method: 'GET', path: `${configMaps}?watch=1`, headers: [], isWatch: true }
      connections.dispatch('node', origin, request, {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, status) => onBegun(status),
        onResponseData: () => undefined,
        onResponseEnd: () => undefined,
        onResponseError: (_controller, error) => onBroken(error),
      })
      return { begun, broken }
    }
    const { begun, broken } = watch()
    t.equal(await begun, 200)
    t.equal(connections.open(origin, 'h2'), 1)
    way.cut()
    t.match(await broken, { code: 'STREAM_BROKEN', cause: { code: 'SESSION_SILENT' } })
    t.equal(await watch().begun, 200)
  },
)

/** Resolves with the number of HTTP/2 connections when 600 watches were open. */
async function watchedBy600(t: Test, apiserverFlags: readonly string[]): Promise<number> {
  const plane = await startControlPlane(t, { apiserverFlags })
  const hub = await hubBefore(t, plane)
  const kubelet = hub.as('kubelet')
  const watches: Watching[] = await inBatches(600, async (nth) => {
    const fieldSelector = `metadata.name=${nameOfNth(nth)}`
    const { resourceVersion } = await kubelet.list(`${configMaps}?fieldSelector=${fieldSelector}`)
    return kubelet.watch(configMaps, { fieldSelector, resourceVersion })
  })
  const open = await hub.metric(
    `nodehub_upstream_connections{upstream="${plane.url}",protocol="h2"}`,
  )
  const events = watches.map((watch) => watch.next())
  await inBatches(600, (nth) =>
    plane.admin.post(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: nameOfNth(nth) },
    }),
  )
  const names = (await Promise.all(events)).map((event) => event && nameOf(event.object))
  t.strictSame(
    names,
    watches.map((_, nth) => `default/${nameOfNth(nth)}`),
  )
  return open
}

function hubBefore(t: Test, plane: ControlPlane): Promise<TestHub> {
  const { certificate, key } = plane.credentials(administrator)
  return startTestHub(t, {
    upstreams: [{ url: plane.url }],
    flags: [
      `--upstream-ca=${plane.pki.ca.certificate}`,
      `--upstream-client-cert=${certificate}`,
      `--upstream-client-key=${key}`,
    ],
  })
}

/** A few at a time, in order. */
async function inBatches<Result>(
  count: number,
  act: (nth: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (let from = 0; from < count; from += 30) {
    const batch = Array.from({ length: Math.min(30, count - from) }, (_, i) => act(from + i))
    results.push(...(await Promise.all(batch)))
  }
  return results
}
