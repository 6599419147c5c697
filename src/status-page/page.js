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

/** Flags break nowhere. */
const withFlags = (words) =>
  words
    .split(/(--[a-z-]+)/)
    .map((piece, i) => (i % 2 === 0 ? piece : element('span', { class: 'flag' }, piece)))

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
  hour: [
    ['Until', ({ until }) => until],
    ['Link', ({ link }) => link],
    ...['cloud', 'cache', 'hub'].map((source) => [
      `From ${source}`,
      ({ [source]: answers }) => count(answers),
      'number',
    ]),
    ['Refused', ({ refused }) => count(refused), 'number'],
    ['p99', ({ p99Ms }) => orNone(p99Ms, milliseconds), 'number'],
    ['Memory', ({ memoryBytes }) => orNone(memoryBytes, size), 'number'],
    ['Cache', ({ cacheBytes }) => orNone(cacheBytes, size), 'number'],
  ],
  load: [
    ['Of', ({ name }) => loads[name].title],
    ['Now', ({ name, current }) => loads[name].show(current), 'number'],
    ['Most', mostOf, 'number'],
    ['Limit', ({ name, limit }) => loads[name].show(limit), 'number'],
  ],
  underWay: [
    ['Component', ({ component }) => component || 'unknown', 'name'],
    ['Request', requestText, 'name'],
    ['Caller', ({ caller, account }) => account ?? caller, 'name minor'],
    ['For', ({ since }) => time(since), 'number'],
    ['Sent', ({ bytes }) => size(bytes), 'number'],
    ['Answer', ({ source }) => (source ? `from the ${source}` : 'none yet')],
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

const milliseconds = (ms) => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`)

const connectionsFull = 'a new one closes an idle one: ss -tp names who leaves them open'

/** What may become full, by its name in the status document, and what comes of it. */
const loads = {
  seats: {
    title: 'Short requests at once',
    show: String,
    full: 'further ones get 429: look for the program that sends them, or raise --max-requests-in-flight',
  },
  connections: { title: 'Connections without TLS', show: String, full: connectionsFull },
  secureConnections: { title: 'Connections with TLS', show: String, full: connectionsFull },
  memory: {
    title: 'Memory',
    show: size,
    full: 'short requests get 429: raise --memory-limit, or the limit of its unit or pod',
  },
  cache: {
    title: 'Cache on the disk',
    show: size,
    full: 'what was not used for longest is dropped: raise --cache-max-bytes',
  },
}

const isNearlyFull = ({ most, limit }) => most >= 0.9 * limit

function mostOf(row) {
  const shown = loads[row.name].show(row.most)
  const percent = `${Math.round((100 * row.most) / row.limit)} %`
  return isNearlyFull(row) ? text(`▲ ${shown}, ${percent}`, 'warn') : shown
}

function requestText({ verb, resource, namespace, name = '', path }) {
  return `${verb} ${resource === '' ? path : `${resource} ${inNamespace({ namespace, name })}`}`
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
  /** `folded`: the title under which its table is folded away; absent: it is shown. */
  constructor(id, title, of, show, folded) {
    Object.assign(this, { id, title, of, show, folded })
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
      this.folded === undefined
        ? this.region
        : element('details', {}, element('summary', {}, this.folded), this.region),
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
  new Section('hour', 'Last hour', ['lastHour', 'saturation'], hour, 'As a table, by five minutes'),
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
          .flatMap(({ name, fault, required, remedy }) => [
            element('p', { class: required ? 'bad' : 'warn' }, `▲ ${name}: ${fault}`),
            ...todo(remedy),
          ]),
        ...unwell(notes),
        ...todo(upstreams.find(({ remedy }) => remedy)?.remedy),
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
  new Section('load', 'Load', ['saturation'], ({ saturation }) => {
    const rows = Object.entries(saturation).map(([name, each]) => ({ name, ...each }))
    return {
      rows,
      summary: 'now, the most of the last hour, and the limit',
      intro: rows
        .filter(isNearlyFull)
        .flatMap(({ name }) => todo(`${loads[name].title}: ${loads[name].full}`)),
    }
  }),
  new Section('served', 'Served from', ['served'], ({ served }) => ({
    ...part(served),
    summary: 'answers since the start',
    intro: todo(
      served.items.some(({ refused }) => refused > 0) &&
        'Why answers were refused: nodehub inspect requests --code=4xx,5xx',
    ),
  })),
  new Section('underWay', 'Under way', ['underWay'], ({ underWay }) => ({
    ...part(underWay),
    summary: 'requests besides watches, the oldest first',
  })),
  new Section('watches', 'Watches', ['watches'], ({ watches }) => ({
    ...part(watches),
    summary: `${watches.items.reduce((sum, { open }) => sum + open, 0)} open`,
  })),
  new Section('collections', 'Collections', ['collections', 'cache'], ({ collections, cache }) => ({
    ...part(collections),
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
        ...clashing(pods),
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
const todo = (words) => (words ? [element('p', { class: 'quiet' }, withFlags(`→ ${words}`))] : [])

const sources = ['cloud', 'cache', 'hub']
const sum = (numbers) => numbers.reduce((one, other) => one + other, 0)
const most = (numbers) => Math.max(0, ...numbers)
const orNone = (number, show) => (number === null ? '–' : show(number))

/** The last hour, a bar for each minute, and the same as a table. */
function hour({ lastHour, saturation, at }) {
  const until = Math.floor(Date.parse(at) / 60_000)
  const starts = [59, 49, 39, 29, 19].map((ago) => element('span', {}, clock(until - ago)))
  const last = element(
    'span',
    {},
    element('span', {}, clock(until - 9)),
    element('span', { class: 'minor' }, 'now'),
  )
  return {
    summary: 'by the minute, in UTC',
    intro: [
      element(
        'figure',
        {},
        linesOf(lastHour, saturation).flatMap(([title, series, ...words]) => [
          element('span', { class: 'title' }, title),
          bars(`${title} in each minute of the last hour`, series),
          element('span', { class: 'words' }, words.flat()),
        ]),
        element('span', { class: 'axis', 'aria-hidden': 'true' }, starts, last),
      ),
    ],
    rows: fiveMinutes(lastHour, until),
  }
}

/** `[title, series of values by minute, what is said of them]` */
function linesOf({ online, p99Ms, memoryBytes, cacheBytes, refused, ...answers }, saturation) {
  const known = online.filter((each) => each !== null)
  const offline = known.filter((each) => !each).length
  const minutes = (wanted, height) => online.map((each) => (each === wanted ? height : 0))
  const key = (name, words) => element('span', { class: `key ${name}` }, words)
  const atMost = (name, values) =>
    `at most ${size(most(values))}${saturation[name] ? ` of ${size(saturation[name].limit)}` : ''}`
  return [
    [
      'Link',
      { online: minutes(true, 1), offline: minutes(false, 0.5) },
      offline === 0
        ? key('online', 'always online')
        : key('offline', `offline in ${offline} of ${known.length} min`),
    ],
    ['Answers', answers, sources.map((name) => key(name, `${sum(answers[name])} ${name} `))],
    ['Refused', { refused }, key('refused', `${sum(refused)} answers`)],
    // By their roots: a single slow minute would flatten all others.
    [
      'p99',
      { time: p99Ms.map(Math.sqrt) },
      `at most ${milliseconds(most(p99Ms))}, of short requests`,
    ],
    ['Memory', { size: memoryBytes }, atMost('memory', memoryBytes)],
    ['Cache', { size: cacheBytes }, atMost('cache', cacheBytes)],
  ]
}

const clock = (minute) => new Date(minute * 60_000).toISOString().slice(11, 16)

/** Stacked in the order of the series. The minute with the most has the full height. */
function bars(label, series) {
  const all = Object.entries(series)
  const totals = all[0][1].map((_, i) => sum(all.map(([, values]) => values[i])))
  const scale = 40 / most(totals)
  const ofMinute = (i) => {
    let y = 40
    return all.map(([name, { [i]: value }]) => {
      y -= scale * value
      return (
        value > 0 && drawn('rect', { class: name, x: 10 * i, y, width: 8, height: scale * value })
      )
    })
  }
  const ticks = [0, 100, 200, 300, 400, 500].map((x) =>
    drawn('line', { x1: x, y1: 0, x2: x, y2: 40 }),
  )
  return drawn(
    'svg',
    { viewBox: '0 0 600 40', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    ticks,
    totals.flatMap((_, i) => ofMinute(i)).filter(Boolean),
  )
}

/** Up to twelve rows, the present one first; none of what is before the start. */
const fiveMinutes = (lastHour, until) =>
  Array.from({ length: 12 }, (_, i) => {
    const of = (name) => lastHour[name].slice(55 - 5 * i, 60 - 5 * i)
    const known = of('online').filter((each) => each !== null)
    return {
      until: clock(until - 5 * i + 1),
      known: known.length > 0,
      link: known.every(Boolean) ? 'online' : '○ offline',
      ...Object.fromEntries([...sources, 'refused'].map((name) => [name, sum(of(name))])),
      ...Object.fromEntries(
        ['p99Ms', 'memoryBytes', 'cacheBytes'].map((name) => [name, most(of(name)) || null]),
      ),
    }
  }).filter(({ known }) => known)

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

/** What to do about a line of readiness that is no check. */
const noteRemedies = [
  [/^\S+ unusable since/, 'Correct it: it is read again by itself.'],
  [/^config .*next start/, 'Restart the hub: systemctl restart nodehub'],
  [
    /^cache begun empty/,
    'Leave the node its link until nodehub inspect boot ends with 0; if it happens again, replace the disk.',
  ],
  [
    /^filters cannot read .*403/,
    'As an administrator of the cluster: nodehub manifests --part rbac | kubectl apply -f -',
  ],
  [/^filters know nothing of NodePool/, 'Create the pool, or put the node into another one.'],
  [/^filter .* has failed/, 'Lines “a filter failed” of the log have object and error.'],
]

function clashing(pods) {
  const some = pods?.items.filter(({ clashes }) => clashes.length > 0) ?? []
  if (some.length === 0) return []
  return [
    element(
      'p',
      { class: 'bad' },
      `▲ ${some.length} share a port of the host with another program.`,
    ),
    ...todo('Give one of the two another port, or keep the pod off host-network pools.'),
  ]
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
          lines.map((line) => {
            const [, remedy] = noteRemedies.find(([of]) => of.test(line)) ?? []
            return element('li', {}, line, todo(remedy))
          }),
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
