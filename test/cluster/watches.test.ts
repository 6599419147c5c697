import t, { type Test } from 'tap'
import { nameOf, type Watching } from '../kit/client.ts'
import { administrator, noControlPlane, startControlPlane } from '../kit/control-plane.ts'
import { startTestHub } from '../kit/hub.ts'

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
  'so they do where the API server has them go to a new connection now and then',
  { skip, timeout: 240_000 },
  async (t) => {
    // The most it takes. Its limit of streams is 100 by default.
    const open = await watchedBy600(t, ['--goaway-chance=0.02'])
    t.ok(open >= 7, `${open} connections`)
  },
)

/** Resolves with the number of HTTP/2 connections when 600 watches were open. */
async function watchedBy600(t: Test, apiserverFlags: readonly string[]): Promise<number> {
  const plane = await startControlPlane(t, { apiserverFlags })
  const { certificate, key } = plane.credentials(administrator)
  const hub = await startTestHub(t, {
    upstreams: [{ url: plane.url }],
    flags: [
      `--upstream-ca=${plane.pki.ca.certificate}`,
      `--upstream-client-cert=${certificate}`,
      `--upstream-client-key=${key}`,
    ],
  })
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(configMaps)
  const watches: Watching[] = await inBatches(600, (nth) =>
    kubelet.watch(configMaps, {
      fieldSelector: `metadata.name=${nameOfNth(nth)}`,
      resourceVersion,
    }),
  )
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
