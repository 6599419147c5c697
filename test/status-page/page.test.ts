import { readFileSync } from 'node:fs'
import axe, { type Result } from 'axe-core'
import t, { type Test } from 'tap'
import { addCsiNode, kubeletOf, podWith, startUp } from '../kit/bootable.ts'
import { Browser, noBrowser, type Page } from '../kit/browser.ts'
import { pods, podsOfNode } from '../kit/cloud.ts'
import { startCloud, startTestHub, type CloudServer, type TestHub } from '../kit/hub.ts'

t.setTimeout(300_000) // a browser that starts takes its time on a busy machine

interface Shown {
  readonly cloud: CloudServer
  readonly hub: TestHub
  readonly browser: Browser
}

const addressOf = (hub: TestHub): string => `http://127.0.0.1:${hub.hub.opsPort}/`

const tokenOf = (hub: TestHub): string => readFileSync(hub.inspectTokenFile, 'utf8')

const withToken = (hub: TestHub): string => `${addressOf(hub)}#token=${tokenOf(hub)}`

/** Another user than root, where the test runs as root. */
const another = process.getuid?.() === 0 ? 65_534 : undefined

async function start(t: Test, uid?: number): Promise<Shown> {
  const cloud = await startCloud(t)
  addCsiNode(cloud)
  cloud.sandbox.create(pods, podWith('press', { secret: { secretName: 'password' } }))
  const [hub, browser] = await Promise.all([
    startTestHub(t, { upstreams: [cloud], flags: ['--anonymous-loopback=node'] }),
    Browser.start(t, uid),
  ])
  await startUp(kubeletOf(hub))
  return { cloud, hub, browser }
}

const section = (id: string): string => `[data-section=${id}]`

const focused = (page: Page): Promise<string> => page.evaluate('document.activeElement.id')

void t.test(
  'the page follows the hub through an outage and back',
  { skip: noBrowser },
  async (t) => {
    const { cloud, hub, browser } = await start(t)
    const kubelet = kubeletOf(hub)
    const { resourceVersion } = await kubelet.list(podsOfNode)
    await kubelet.watch(`${podsOfNode}&watch=true&resourceVersion=${resourceVersion}`)
    const page = await browser.open(withToken(hub))
    t.match(await page.shows('#state', /Online/), /^● Online since \d{4}-/)
    t.equal(await page.evaluate('location.hash'), '', 'the token is not left in the address')
    t.match(await page.shows(section('upstreams'), /healthy/), cloud.url)
    await page.shows(section('watches'), /kubelet\s+pods/)
    await page.shows(section('collections'), /pods[^\n]*followed/)
    await page.shows(section('boot'), /default\/press\s.*missing\s+secrets default\/password/)
    await page.shows(section('filters'), /masterservice/)
    await page.shows(section('certificates'), /TLS proxy/)

    await cloud.unplug()
    await hub.offline()
    await kubelet.list(podsOfNode)
    t.match(await page.shows('#state', /Offline/), /answering from the cache since/)
    t.match(await page.shows(section('upstreams'), /unhealthy/), /ago|s$|\d+ s/m)
    await page.shows(section('served'), /cache 200/)
    await page.shows(section('log'), /offline: answering from the cache/)

    await cloud.plug()
    await hub.online()
    await page.shows('#state', /^● Online/)

    await hub.stop()
    await page.shows('#state', /does not answer; what is shown is of/)
  },
)

void t.test(
  'after a restart without a link it shows what was stored',
  { skip: noBrowser },
  async (t) => {
    const { cloud, hub, browser } = await start(t)
    await cloud.unplug()
    await hub.restart()
    await hub.offline()
    const page = await browser.open(withToken(hub))
    await page.shows('#state', /^○ Offline/)
    await page.shows(section('collections'), /pods[^\n]*stored/)
    t.match(
      await page.shows(section('boot'), /1 of 1 pods would not come back/),
      /default\/press\s.*missing\s+secrets default\/password/,
    )
  },
)

void t.test(
  'who is not root is asked for the token, and may type it',
  { skip: noBrowser },
  async (t) => {
    const { hub, browser } = await start(t, another)
    const page = await browser.open(`${addressOf(hub)}#token=guessed`)
    await page.shows('#sign-in', /This token is not accepted/)
    t.equal(await focused(page), 'token')
    t.equal(await page.text('main'), '', 'nothing of the hub is shown')
    await page.type(tokenOf(hub))
    await page.press('Enter', '\r')
    await page.shows('#state', /^● Online/)
    t.ok(await page.evaluate(`document.querySelector('#sign-in').hidden`))
  },
)

void t.test('it is used by keyboard alone', { skip: noBrowser }, async (t) => {
  const { hub, browser } = await start(t)
  const page = await browser.open(withToken(hub))
  await page.shows(section('filters'), /masterservice/)
  await page.press('Tab')
  t.equal(await page.evaluate('document.activeElement.className'), 'skip')
  await page.press('/', '/')
  t.equal(await focused(page), 'filter')
  await page.type('masterservice')
  t.match(await page.text(`${section('filters')} tbody`), /^masterservice[^\n]*$/)
  await page.press('Escape')
  t.match(await page.text(`${section('filters')} tbody`), /\n/)
})

void t.test('on a phone nothing is wider than the screen', { skip: noBrowser }, async (t) => {
  const { hub, browser } = await start(t)
  const page = await browser.open(withToken(hub), { width: 360, height: 780 })
  await page.shows(section('collections'), /pods/)
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
})

void t.test(
  'no script but its own runs, and no text becomes HTML',
  { skip: noBrowser },
  async (t) => {
    const { hub, browser } = await start(t)
    const page = await browser.open(withToken(hub))
    await page.shows('#state', /Online/)
    await t.rejects(page.evaluate(`document.body.innerHTML = '<b>bold</b>'`), /TrustedHTML/)
    const blocked = await page.evaluate(`new Promise((resolve) => {
    document.addEventListener('securitypolicyviolation', (event) => resolve(event.blockedURI))
    const script = document.createElement('img')
    script.src = 'http://127.0.0.2/'
    document.body.append(script)
  })`)
    t.match(blocked, /^http:\/\/127\.0\.0\.2/)
  },
)

void t.test('axe finds nothing that is in the way', { skip: noBrowser }, async (t) => {
  const { cloud, hub, browser } = await start(t)
  const findings = async (page: Page): Promise<string[]> => {
    await page.evaluate(`${axe.source}; undefined`)
    const found = await page.evaluate<Result[]>('axe.run().then(({ violations }) => violations)')
    return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
  }
  for (const dark of [false, true]) {
    for (const width of [1280, 360]) {
      const page = await browser.open(withToken(hub), { width, dark })
      await page.shows(section('log'), /online/)
      t.strictSame(await findings(page), [], `online, ${width} wide${dark ? ', dark' : ''}`)
    }
  }
  await cloud.unplug()
  await hub.offline()
  const page = await browser.open(withToken(hub))
  await page.shows(section('upstreams'), /unhealthy/)
  t.strictSame(await findings(page), [], 'offline')
})
