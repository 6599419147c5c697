import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { nameOf } from '../kit/client.ts'
import { startTestHub } from '../kit/hub.ts'
import { authority } from '../kit/wire/certificates.ts'
import { h2Upstream, type H2Request } from '../kit/wire/h2-upstream.ts'
import type { Teardown } from '../kit/wire/wire.ts'

const pki = await authority()
const serving = await pki.server()

const watchCount = 600
const configMaps = '/api/v1/namespaces/default/configmaps'

/** The path of a file with the authority's certificate, gone with the test. */
function authorityFile(t: Teardown): string {
  const folder = mkdtempSync(join(tmpdir(), 'many-watches-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'ca.crt')
  writeFileSync(file, pki.ca)
  return file
}

void t.test(
  'F17: 600 watches of one kubelet share at most 4 connections to a server that allows 250 streams on each',
  async (t) => {
    const upstream = await h2Upstream(t, { ...serving, settings: { maxConcurrentStreams: 250 } })
    const hub = await startTestHub(t, {
      upstreams: [{ url: upstream.origin }],
      flags: [`--upstream-ca=${authorityFile(t)}`],
    })
    const kubelet = hub.as('kubelet')
    const asked: H2Request[] = []
    const watches = Array.from({ length: watchCount }, (_, nth) =>
      kubelet.watch(configMaps, { fieldSelector: `metadata.name=config-${nth}` }),
    )
    while (asked.length < watchCount) {
      const request = await upstream.next()
      request.stream.respond({ ':status': 200, 'content-type': 'application/json' })
      asked.push(request)
    }
    const open = await Promise.all(watches)
    t.equal(new Set(asked.map(({ session }) => session)).size, 3)
    for (const { stream, headers } of asked) {
      const name = /metadata.name%3D(config-\d+)/.exec(String(headers[':path']))?.[1]
      const metadata = { name, namespace: 'default', resourceVersion: '7' }
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata }
      stream.write(`${JSON.stringify({ type: 'ADDED', object })}\n`)
    }
    const events = await Promise.all(open.map((watch) => watch.next()))
    t.strictSame(
      events.map((event) => event && nameOf(event.object)),
      open.map((_, nth) => `default/config-${nth}`),
    )
  },
)
