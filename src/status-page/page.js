// The status page: follows /inspect/status and shows it. All text of the hub is set as text, never
// as HTML.

const reconnectMs = 2_000
/** The hub sends at least the time every two seconds. */
const silentMs = 15_000

/** The members of the status document that have arrived so far. */
let latest = {}
let shown = false
let token = takeToken()
let stream = new AbortController()
let signedIn = () => {}

const byId = (id) => document.getElementById(id)
const wait = (ms) => new Promise((resolve) => void setTimeout(resolve, ms))

/**
 * A token in the fragment, which is never sent, is taken out of the address. The tab remembers it
 * until it is closed.
 */
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get('token')
  if (given !== null) {
    sessionStorage.setItem('token', given)
    history.replaceState(null, '', location.pathname)
  }
  return sessionStorage.getItem('token') ?? undefined
}

async function follow() {
  for (;;) {
    if (document.hidden) await becomesVisible()
    let isSaid = false
    try {
      isSaid = await readStream()
    } catch {
      // The connection broke off: the page says so, and tries again.
    }
    if (!isSaid && !document.hidden) lost('The hub does not answer')
    await wait(reconnectMs)
  }
}

const becomesVisible = () =>
  new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }))

/** Resolves at the end of the stream: whether the page says already why there is none. */
async function readStream() {
  stream = new AbortController()
  const { signal } = stream
  let heardAt = performance.now()
  const watchdog = setInterval(() => {
    if (performance.now() - heardAt > silentMs) stream.abort()
  }, 1_000)
  try {
    const answer = await fetch('inspect/status?watch=true', {
      headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
      cache: 'no-store',
      signal,
    })
    if (answer.status === 401 || answer.status === 403) {
      await signIn(await answer.text())
      return true
    }
    if (!answer.ok) {
      lost(await answer.text())
      return true
    }
    byId('sign-in').hidden = true
    latest = {}
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    let unread = ''
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return false
      heardAt = performance.now()
      const events = (unread + value).split('\n\n')
      unread = events.pop()
      for (const event of events) take(event)
    }
  } finally {
    clearInterval(watchdog)
  }
}

/** Shows a form for a token, and resolves when one was entered. */
async function signIn(reason) {
  sessionStorage.removeItem('token')
  byId('sign-in-reason').textContent = token === undefined ? '' : 'This token is not accepted.'
  byId('sign-in').hidden = false
  announce('The hub needs a token', 'warn')
  byId('freshness').textContent = reason.trim()
  byId('token').focus()
  await new Promise((resolve) => {
    signedIn = resolve
  })
  announce('Connecting to the hub…', '')
}

function lost(why) {
  document.body.classList.add('stale')
  const since = latest.at === undefined ? '' : `; what is shown is of ${latest.at}`
  announce(`${why.trim()}${since}`, 'bad')
}

function take(event) {
  if (!event.startsWith('data: ')) return
  const changed = JSON.parse(event.slice('data: '.length))
  latest = { ...latest, ...changed }
  document.body.classList.remove('stale')
  if (!shown) build()
  head()
  for (const section of sections) if (section.of.some((member) => member in changed)) section.draw()
  for (const each of document.querySelectorAll('time')) showAge(each)
}

// What is said at the top.

/** Changed only when it says something else: screen readers read it out. */
function announce(text, tone) {
  const state = byId('state')
  if (state.textContent !== text) state.textContent = text
  state.className = tone
}

function head() {
  const { node, version, memory, link, ready, checks, at } = latest
  byId('node').textContent = `on ${node}`
  document.title = `${linkWord(link)}: nodehub on ${node}`
  byId('freshness').className = memory.bytes < 0.9 * memory.limit ? 'quiet' : 'warn'
  byId('freshness').textContent =
    `version ${version}, ${size(memory.bytes)} of ${size(memory.limit)} memory, as of ${at.replace('T', ' ').slice(0, 19)} UTC`
  const faults = checks.filter(({ fault }) => fault !== undefined)
  const unready = ready ? '' : `, not ready: ${faults.map(({ name }) => name).join(', ')}`
  const tone = !ready ? 'bad' : link.online ? 'good' : 'warn'
  const since =
    link.since === undefined ? '' : ` since ${link.since.slice(0, 19).replace('T', ' ')} UTC`
  announce(`${linkMark(link)} ${linkWord(link)}${since}${unready}`, tone)
}

const linkMark = ({ online }) => (online ? '●' : '○')
const linkWord = ({ online }) =>
  online === null ? 'Not probed yet' : online ? 'Online' : 'Offline, answering from the cache'

// Building blocks.

const element = (name, ...content) => filled(document.createElement(name), ...content)
const drawn = (name, ...content) =>
  filled(document.createElementNS('http://www.w3.org/2000/svg', name), ...content)

function filled(made, properties, ...children) {
  for (const [key, value] of Object.entries(properties ?? {})) made.setAttribute(key, value)
  made.append(...children.flat().filter((child) => child !== undefined))
  return made
}

const text = (words, tone) => (tone ? element('span', { class: tone }, words) : words)

function time(at) {
  const made = element('time', { datetime: at, title: at })
  showAge(made)
  return made
}

function showAge(made) {
  const said = ageText(Date.parse(made.dateTime))
  if (made.textContent !== said) made.textContent = said
}

/** A time that cannot be read, the epoch and Go's zero time (year 1) are no time. */
function ageText(at) {
  if (!(at > 0)) return 'unknown'
  const seconds = (Date.parse(latest.at) - at) / 1000
  const words = duration(Math.abs(seconds))
  return seconds < -1 ? `in ${words}` : words
}

function duration(seconds) {
  if (seconds < 100) return `${Math.max(0, Math.round(seconds))} s`
  if (seconds < 100 * 60) return `${Math.round(seconds / 60)} min`
  if (seconds < 72 * 3600) return `${Math.round(seconds / 3600)} h`
  if (seconds < 2 * yearSeconds) return `${Math.round(seconds / 86_400)} days`
  // A certificate without an end has the year 9999 (RFC 5280 section 4.1.2.5).
  return seconds < 100 * yearSeconds
    ? `${Math.round(seconds / yearSeconds)} years`
    : 'over 100 years'
}

const yearSeconds = 365.25 * 86_400

function size(bytes) {
  if (bytes < 1024) return `${bytes} B`
  if (bytes < 1024 ** 2) return `${(bytes / 1024).toFixed(1)} KiB`
  if (bytes < 1024 ** 3) return `${(bytes / 1024 ** 2).toFixed(1)} MiB`
  return `${(bytes / 1024 ** 3).toFixed(1)} GiB`
}

/** Names may break after their separators, and nowhere else. */
const breakable = (name) =>
  name
    .split(/(?<=[/.,:;=&_-])/)
    .flatMap((piece, i) => (i === 0 ? [piece] : [document.createElement('wbr'), piece]))

const inNamespace = ({ namespace, name }) => (namespace ? `${namespace}/${name}` : name)
const selected = ({ namespace, labelSelector, fieldSelector }) =>
  [namespace && `in ${namespace}`, labelSelector, fieldSelector].filter(Boolean).join(' ')

/** The columns of a table: `[title, cell of a row, class]`. */
const tables = {
  upstreams: [
    ['API server', ({ origin }) => origin, 'name'],
    ['Health', health],
    ['For', ({ since }) => time(since)],
    ['Probe', ({ probeMs }) => (probeMs === undefined ? '–' : `${probeMs} ms`), 'number'],
    ['Connections', ({ connections }) => String(connections), 'number minor'],
    ['Last failures', failures],
  ],
  served: [
    ['Component', ({ component }) => component || 'unknown', 'name'],
    ['Request', ({ verb, what }) => `${verb} ${what}`, 'name'],
    ['Cloud', ({ cloud }) => count(cloud), 'number'],
    ['Cache', ({ cache }) => count(cache), 'number'],
    ['Hub', ({ hub }) => count(hub), 'number minor'],
    ['Refused', ({ refused }) => text(count(refused), refused > 0 && 'warn'), 'number minor'],
    ['Last', ({ last }) => [`${last.source} ${last.code}, `, time(last.at)]],
  ],
  collections: [
    ['Collection', ({ resource }) => resource, 'name'],
    ['Part', (row) => selected(row), 'name minor'],
    ['Read by', ({ identity }) => identity, 'name minor'],
    ['As', ({ representation }) => representation, 'minor'],
    ['Objects', ({ objects }) => String(objects), 'number'],
    ['Size', ({ bytes }) => size(bytes), 'number minor'],
    ['Confirmed', ({ confirmedAt }) => time(confirmedAt), 'number'],
    ['Watchers', ({ watchers }) => count(watchers), 'number'],
    ['State', collectionState],
  ],
  watches: [
    ['Component', ({ component }) => component || 'unknown', 'name'],
    ['Watches', ({ resource }) => resource, 'name'],
    ['Part', (row) => selected(row), 'name minor'],
    ['Answered from', ({ source = 'nothing yet' }) => source],
    ['Open', ({ open }) => String(open), 'number'],
    ['For', ({ since }) => time(since), 'number'],
  ],
  boot: [
    ['Pod', (row) => row.pod, 'name'],
    ['Why', ({ reason }) => text(`▲ ${reason}`, 'warn')],
    ['What', ({ resource, ...row }) => `${resource} ${inNamespace(row)}`, 'name'],
    ['Meaning', ({ message }) => message, 'minor'],
    ['Remedy', ({ reason }) => remedies[reason]],
  ],
  filters: [
    ['Filter', ({ name }) => name, 'name'],
    ['State', filterState],
    ['Edited', ({ edited }) => count(edited), 'number'],
    ['Withheld', ({ withheld }) => count(withheld), 'number'],
    ['Failed', ({ failed }) => text(count(failed), failed > 0 && 'bad'), 'number'],
    ['For', ({ rules }) => rules.map(ruleText).join('; '), 'minor'],
  ],
  pods: [
    ['Pod', inNamespace, 'name'],
    ['Network', ({ network }) => (network === 'pod' ? 'its own' : 'the host’s')],
    [
      'Ports',
      ({ ports }) =>
        ports.map(({ containerPort, protocol }) => `${containerPort}/${protocol}`).join(' '),
    ],
    [
      'Clashes',
      ({ clashes }) =>
        clashes.map((each) => text(`▲ ${each.port}/${each.protocol} ${each.with} `, 'bad')),
    ],
  ],
  certificates: [
    ['Use', ({ use }) => uses[use]],
    ['Certificate', ({ names }) => names, 'name minor'],
    ['Ends', certificateEnd],
    ['File', ({ file = '–' }) => file, 'name minor'],
  ],
  log: [
    ['Ago', ({ at }) => time(at), 'number'],
    ['Level', ({ level }) => text(level, levels[level])],
    ['Message', ({ message }) => message],
    ['Fields', ({ fields }) => fieldsText(fields), 'name minor'],
  ],
}

/** By the reason of a boot verdict. */
const remedies = {
  missing: 'stay online for a minute; after that, restart the kubelet while online',
  absent: 'create it, or change the pod',
  damaged: 'stay online: the next answer of the cloud heals it',
  forbidden: 'give the node the right to read it',
  expired: 'stay online: the kubelet requests another one',
  unbound: 'see kubectl describe pvc',
  unattached: 'see kubectl describe volumeattachment',
  refused: 'restart the component while online, or wait for its next try',
}

const count = (number) => (number === 0 ? '·' : String(number))
const levels = { warn: 'warn', error: 'bad', fatal: 'bad' }
const uses = {
  client: 'to API servers',
  serving: 'TLS proxy',
  'upstream-ca': 'CA of API servers',
  'client-ca': 'CA of clients',
}

function health({ health, availability, refusesCredentials }) {
  if (refusesCredentials) return text('▲ refuses the hub’s credentials', 'bad')
  if (health === 'healthy' && availability === 'ready') return text('● healthy', 'good')
  const more = availability === health || availability === 'ready' ? '' : `, ${availability}`
  return text(`▲ ${health}${more}`, health === 'unhealthy' ? 'bad' : 'warn')
}

function failures({ failures, lastError }) {
  if (failures.length === 0) return text('none', 'quiet')
  const [last] = failures
  const times = last.times > 1 ? ` (${last.times} times)` : ''
  return [text(`${last.message}${times}, `, lastError === undefined ? 'quiet' : ''), time(last.at)]
}

function collectionState({ live }) {
  return live ? text('● watched', 'good') : text('○ stored', 'quiet')
}

function filterState({ state, waitsFor }) {
  if (state === 'acting') return text('● acting', 'good')
  if (state === 'waiting') return text(`▲ waits for ${waitsFor.join(', ')}`, 'warn')
  return text(state === 'idle' ? '○ nothing to do here' : '○ disabled', 'quiet')
}

const ruleText = ({ components, resources }) =>
  `${components.join(', ') || 'no one'}: ${resources.join(', ')}`

const soonMs = 7 * 86_400_000

function certificateEnd({ notAfter, fault, renewalFault }) {
  const left = Date.parse(notAfter) - Date.parse(latest.at)
  return [
    fault !== undefined
      ? text(`▲ ${fault}, `, 'bad')
      : left < soonMs
        ? text('▲ ', 'warn')
        : undefined,
    time(notAfter),
    renewalFault && text(` ▲ no new one is obtained: ${renewalFault}`, 'warn'),
  ]
}

const fieldsText = (fields) =>
  Object.entries(fields)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')

// Sections.

class Section {
  constructor(id, title, of, show) {
    Object.assign(this, { id, title, of, show })
  }

  build() {
    this.summary = element('small', {})
    this.intro = element('div', {})
    this.region = element('div', {
      class: 'scroll',
      tabindex: '0',
      role: 'region',
      'aria-labelledby': this.id,
    })
    // A narrow page lays a table out as paragraphs, which takes the roles from its elements.
    this.rows = element('tbody', { role: 'rowgroup' })
    this.more = element('p', { class: 'more', hidden: '' })
    const columns = tables[this.id]
    const heads = columns.map(([title, , style = '']) =>
      element(
        'th',
        { scope: 'col', role: 'columnheader', class: style.replace('name', '') },
        title,
      ),
    )
    this.region.append(
      element(
        'table',
        { role: 'table' },
        element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, heads)),
        this.rows,
      ),
      this.more,
    )
    return element(
      'section',
      { 'data-section': this.id },
      element('h2', { id: this.id, tabindex: '-1' }, `${this.title} `, this.summary),
      this.intro,
      this.region,
    )
  }

  draw() {
    const { rows, summary = '', omitted = 0, intro = [] } = this.show(latest)
    this.summary.textContent = summary
    this.intro.replaceChildren(...intro)
    this.rows.replaceChildren(
      ...rows.map((row) =>
        element(
          'tr',
          { role: 'row' },
          tables[this.id].map(([title, cell, style = '']) =>
            element(
              'td',
              { role: 'cell', class: style, 'data-title': title },
              style.includes('name') ? breakable(cell(row)) : cell(row),
            ),
          ),
        ),
      ),
    )
    if (rows.length + intro.length === 0) this.intro.replaceChildren(none())
    this.more.textContent = `and ${omitted} more`
    this.more.hidden = omitted === 0
    this.filter()
  }

  filter() {
    const wanted = byId('filter').value.trim().toLowerCase()
    for (const row of this.rows.children)
      row.hidden = !row.textContent.toLowerCase().includes(wanted)
    this.region.hidden = this.rows.childElementCount === 0 && this.more.hidden
  }
}

const none = () => element('p', { class: 'quiet' }, 'None.')

const part = (list) => ({ rows: list.items, omitted: list.omitted })

const sections = [
  new Section(
    'upstreams',
    'API servers',
    ['upstreams', 'notes', 'checks'],
    ({ upstreams, checks, notes }) => ({
      rows: upstreams,
      summary: `${upstreams.filter(({ health }) => health === 'healthy').length} of ${upstreams.length} healthy`,
      intro: [
        ...todo(
          upstreams.some((each) => each.refusesCredentials) &&
            'Compare the hub’s certificate with the CA of the cluster: nodehub inspect certificates',
        ),
        ...checks
          .filter(({ fault }) => fault !== undefined)
          .map(({ name, fault, required }) =>
            element('p', { class: required ? 'bad' : 'warn' }, `▲ ${name}: ${fault}`),
          ),
        ...unwell(notes),
      ],
    }),
  ),
  new Section('boot', 'After a power cut', ['boot'], ({ boot }) => ({
    rows:
      boot === null
        ? []
        : [
            ...bootRows('the node', boot.node),
            ...boot.pods.items.flatMap((pod) => bootRows(inNamespace(pod), pod)),
          ],
    intro: [bootSentence(boot)],
  })),
  new Section('served', 'Served from', ['served', 'lastHour'], ({ served, lastHour }) => ({
    ...part(served),
    summary: 'answers since the start',
    intro: [
      chart(lastHour),
      ...todo(
        served.items.some(({ refused }) => refused > 0) &&
          'Why answers were refused: nodehub inspect requests --code=4xx,5xx',
      ),
    ],
  })),
  new Section('watches', 'Watches', ['watches'], ({ watches }) => ({
    ...part(watches),
    summary: `${watches.items.reduce((sum, { open }) => sum + open, 0)} open`,
  })),
  new Section('collections', 'Collections', ['collections', 'cache'], ({ collections, cache }) => ({
    ...(collections === null
      ? { rows: [], intro: [element('p', { class: 'bad' }, '▲ The store cannot be read.')] }
      : {
          ...part(collections),
        }),
    summary: `${size(cache.bytes)} of ${size(cache.limit)} on the disk`,
  })),
  new Section('filters', 'Filters', ['filters'], ({ filters }) => ({
    rows: filters,
    summary: 'objects decided on since the start',
    intro: todo(
      filters.some(({ failed }) => failed > 0) &&
        'Why a filter failed is in the log: the lines “a filter failed”.',
    ),
  })),
  new Section(
    'pods',
    'Host network',
    ['hostNetwork'],
    ({ hostNetwork: { mode, pool, hostNetworkPool, pods } }) => ({
      ...(pods === null ? { rows: [] } : part(pods)),
      intro: [
        element(
          'p',
          {},
          `--host-network-propagation is ${mode}; ${hostNetworkPool === 'unknown' ? 'the kind of the node’s pool is not known' : `the node is in ${hostNetworkPool ? 'a' : 'no'} host-network pool`}${pool ? ` (${pool})` : ''}.`,
        ),
      ],
    }),
  ),
  new Section('certificates', 'Certificates', ['certificates', 'at'], ({ certificates }) => ({
    rows: certificates,
  })),
  new Section('log', 'Log', ['log'], ({ log }) => ({
    rows: log.toReversed(),
    summary: 'the latest first',
  })),
]

/** What to do, where there is something. */
const todo = (words) => (words ? [element('p', { class: 'quiet' }, `→ ${words}`)] : [])

const sources = ['cloud', 'cache', 'hub']

/** The answers of the last hour by their source, a bar for each minute, the present one last. */
function chart(lastHour) {
  const totals = lastHour.cloud.map((_, i) =>
    sources.reduce((sum, source) => sum + lastHour[source][i], 0),
  )
  const most = Math.max(1, ...totals)
  const bars = totals.flatMap((_, i) => {
    let y = 40
    const bar = (source) => {
      const height = (40 * lastHour[source][i]) / most
      y -= height
      return drawn('rect', { class: source, x: 10 * i, y, width: 8, height })
    }
    const refused = drawn('rect', { class: 'refused', x: 10 * i, y: 42, width: 8, height: 3 })
    return [...sources.map(bar), ...(lastHour.refused[i] > 0 ? [refused] : [])]
  })
  const sums = [...sources, 'refused'].map((name) => {
    const sum = lastHour[name].reduce((one, other) => one + other, 0)
    return { name, words: name === 'refused' ? `${sum} refused` : `${sum} from the ${name}` }
  })
  const label = `Answers of the last hour: ${sums.map(({ words }) => words).join(', ')}`
  return element(
    'figure',
    {},
    drawn(
      'svg',
      { viewBox: '0 0 600 45', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
      drawn('line', { x1: 0, y1: 40.5, x2: 600, y2: 40.5 }),
      ...bars,
    ),
    element(
      'figcaption',
      {},
      element('span', {}, 'an hour ago'),
      ...sums.map(({ name, words }) => element('span', { class: `key ${name}` }, words)),
      element('span', {}, `now; at most ${most} a minute`),
    ),
  )
}

const bootRows = (pod, { problems }) => problems.map((problem) => ({ pod, ...problem }))

function bootSentence(boot) {
  if (boot === null) return element('p', { class: 'quiet' }, 'No verdict yet.')
  const all = boot.pods.items.length + boot.pods.omitted
  if (boot.ready)
    return element(
      'p',
      { class: 'good' },
      `● The node and its ${all} pods would come back without a link.`,
    )
  if (boot.node.unread)
    return element(
      'p',
      { class: 'quiet' },
      '○ Nothing is recorded yet: the kubelet has not read its node and its pods through the hub.',
    )
  const words = boot.node.ready
    ? `▲ ${boot.waiting} of ${all} pods would not come back without a link.`
    : '▲ The node would not come back without a link.'
  return element('p', { class: 'warn' }, words)
}

/** Of the lines of readiness those that tell of something amiss, and that no section shows. */
function unwell(notes) {
  const lines = notes
    .filter((line) => /^\[[ -]\](?!cloud|upstream|boot|cache longest)/.test(line))
    .map((line) => line.slice(3))
  return lines.length === 0
    ? []
    : [
        element(
          'ul',
          { class: 'notes' },
          lines.map((line) => element('li', {}, line)),
        ),
      ]
}

function build() {
  shown = true
  byId('main').replaceChildren(...sections.map((section) => section.build()))
  byId('contents').replaceChildren(
    ...sections.map(({ id, title }) => element('a', { href: `#${id}` }, title)),
  )
  byId('contents').hidden = false
}

byId('filter').addEventListener(
  'input',
  () => shown && sections.forEach((section) => section.filter()),
)
document.addEventListener('keydown', (event) => {
  const typing = event.target instanceof HTMLInputElement
  if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault()
    byId('filter').focus()
  }
  if (event.key === 'Escape' && event.target === byId('filter')) {
    byId('filter').value = ''
    sections.forEach((section) => shown && section.filter())
  }
})
byId('sign-in').addEventListener('submit', (event) => {
  event.preventDefault()
  token = byId('token').value.trim()
  sessionStorage.setItem('token', token)
  byId('token').value = ''
  signedIn()
})
// Nothing is made for a page that is not seen.
document.addEventListener('visibilitychange', () => document.hidden && stream.abort())

void follow()
