import { writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ClusterLookup } from '../../src/cluster/admission/lookup.ts'
import { connect } from '../../src/cluster/api/connect.ts'
import { liveLookup } from '../../src/cluster/live-lookup.ts'
import { poolInformer } from '../../src/cluster/pools.ts'
import { rootFolder } from '../kit/root-folder.ts'
import { portOf } from '../kit/wire/listening.ts'

t.setTimeout(300_000)

/**
 * What admission asks of an API server that answers so, and the paths that were asked for besides
 * the list of pools.
 */
async function lookup(
  t: Test,
  answer: RequestListener,
): Promise<{ found: ClusterLookup; asked: string[] }> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    if (!request.url?.includes('/nodepools?')) asked.push(request.url ?? '')
    answer(request, response)
  })
  const url = `http://127.0.0.1:${await portOf(t, server)}`
  const file = join(rootFolder(t), 'kubeconfig')
  writeFileSync(
    file,
    JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: url } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      users: [{ name: 'u', user: {} }],
      'current-context': 'x',
    }),
  )
  const connected = await connect({
    access: { kind: 'kubeconfig', file },
    namespace: 'x',
  })
  const pools = poolInformer(connected.api)
  t.teardown(async () => {
    await pools[Symbol.asyncDispose]()
    await connected[Symbol.asyncDispose]()
  })
  return { found: liveLookup(connected.api, pools), asked }
}

void t.test('a lookup that gets 429 is not retried or waited for', async (t) => {
  const { found, asked } = await lookup(t, (_request, response) =>
    response.writeHead(429, { 'retry-after': '30' }).end(),
  )
  t.strictSame(
    await Promise.all([
      found.pool('p'),
      found.poolNodes('p'),
      found.nodeLabels('n'),
      found.context('shop').then(({ namespaces }) => namespaces.size),
    ]),
    ['unknown', 'unknown', 'unknown', 0],
  )
  t.equal(asked.length, 4)
})

void t.test('a pool name with slashes or dots stays one path segment', async (t) => {
  const { found, asked } = await lookup(t, (_request, response) => response.writeHead(404).end())
  t.equal(await found.pool('../../../../api/v1/namespaces/a?x=y'), undefined)
  t.equal(asked.length, 1)
  t.match(asked[0], /\/nodepools\/[^/?]+$/)
})

void t.test('a namespace that is no valid name is not looked up', async (t) => {
  const labels = { 'pod-security.kubernetes.io/enforce': 'baseline' }
  const { found, asked } = await lookup(t, (_request, response) =>
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ kind: 'Namespace', metadata: { name: 'shop', labels } })),
  )
  for (const name of ['kube-system/pods?x=0', '../nodes', 'a%2Fb', 'Shop', 'x'.repeat(64)])
    t.equal((await found.context(name)).namespaces.size, 0, name)
  t.strictSame(asked, [])
  t.strictSame((await found.context('shop')).namespaces.get('shop'), { enforce: 'baseline' })
  t.strictSame(asked, ['/api/v1/namespaces/shop'])
})
