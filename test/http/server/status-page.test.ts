import t from 'tap'
import { startCloud, startTestHub } from '../../kit/hub.ts'
import { Client } from '../../kit/client.ts'

void t.test('the page is served to all on loopback, without data of the hub', async (t) => {
  const cloud = await startCloud(t)
  const { hub } = await startTestHub(t, { upstreams: [cloud] })
  const client = new Client({ url: `http://127.0.0.1:${hub.opsPort}`, component: 'browser' })
  for (const [path, type] of [
    ['/', 'text/html'],
    ['/page.js', 'text/javascript'],
    ['/page.css', 'text/css'],
    ['/icon.svg', 'image/svg+xml'],
  ] as const) {
    const { status, headers, body } = await client.send(path)
    t.equal(status, 200, path)
    t.match(headers['content-type'], type)
    t.match(headers['content-security-policy'], /^default-src 'none'; script-src 'self'/)
    t.match(headers, { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' })
    t.notOk(
      /edge-1|\bstyle="|\bon[a-z]+="/.test(body.toString()),
      'no name, no inline style or script',
    )
  }
})

void t.test('a rebound name is not served the page', async (t) => {
  const cloud = await startCloud(t)
  const { hub } = await startTestHub(t, { upstreams: [cloud] })
  const client = new Client({ url: `http://127.0.0.1:${hub.opsPort}`, component: 'browser' })
  t.equal((await client.send('/', { headers: { Host: 'attacker.example' } })).status, 403)
})
