import type { IncomingMessage } from 'node:http'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { fromProtobuf } from '../../src/sandbox/protobuf.ts'
import { readFields } from '../../src/api/codec/protobuf/message/reader.ts'
import { inTime, type Patience } from './until.ts'

/** A watch event as a client sees it. */
export interface Seen {
  readonly type: string
  readonly object: JsonObject
  /** As it came, framing included. */
  readonly frame: Buffer
}

/** A watch under way: events are taken one by one, in the order they came. */
export class Watching {
  readonly answer: IncomingMessage
  /**
   * Resolves when it is over: it came to its end, which is seen by who reads it to there, or it
   * broke off.
   */
  readonly over: Promise<'ended' | 'broken'>
  readonly #events: AsyncGenerator<Seen, void>
  readonly #patience: Patience

  /** `patience`: with each event, and with the end. */
  constructor(answer: IncomingMessage, patience: Patience = {}) {
    this.answer = answer
    this.#patience = patience
    this.#events = eventsOf(answer)
    this.over = new Promise((resolve) => {
      answer.once('close', () => resolve(answer.complete ? 'ended' : 'broken'))
    })
    answer.on('error', () => undefined)
  }

  get status(): number {
    return this.answer.statusCode ?? 0
  }

  /**
   * The next event, or `undefined` where the watch has ended. Rejects where it broke off, and where
   * nothing comes.
   */
  next(): Promise<Seen | undefined> {
    return this.#next('the next event of a watch')
  }

  /** The next event that is no bookmark, or what `next` says without one. */
  async nextChange(): Promise<Seen | undefined> {
    let [bookmarks, late] = [0, false]
    const change = async (): Promise<Seen | undefined> => {
      let event = await this.next()
      for (; event?.type === 'BOOKMARK' && !late; bookmarks++) event = await this.next()
      return event
    }
    const describe = (): string => `${bookmarks} bookmarks`
    try {
      return await inTime('a change in a watch', change(), { ...this.#patience, describe })
    } finally {
      late = true
    }
  }

  async #next(what: string): Promise<Seen | undefined> {
    const { value, done } = await inTime(what, this.#events.next(), this.#patience)
    return done === true ? undefined : value
  }

  /** All events as they come: to be read beside a test whose own waits have an end. */
  [Symbol.asyncIterator](): AsyncGenerator<Seen, void> {
    return this.#events
  }

  async take(count: number): Promise<Seen[]> {
    const taken: Seen[] = []
    while (taken.length < count) {
      const event = await this.#next(`event ${taken.length + 1} of ${count}`)
      if (event === undefined) throw new Error(`the watch ended after ${taken.length} events`)
      taken.push(event)
    }
    return taken
  }

  /** Everything to its end. */
  async rest(): Promise<Seen[]> {
    const taken: Seen[] = []
    for (let event = await this.next(); event; event = await this.next()) taken.push(event)
    return taken
  }

  /** Reads to the end, whichever it is. */
  async end(): Promise<'ended' | 'broken'> {
    await this.rest().catch(() => undefined)
    return inTime('the end of a watch', this.over, this.#patience)
  }

  hangUp(): void {
    this.answer.destroy()
  }
}

async function* eventsOf(answer: IncomingMessage): AsyncGenerator<Seen, void> {
  const protobuf = answer.headers['content-type']?.startsWith('application/vnd.') === true
  let rest = Buffer.alloc(0)
  for await (const chunk of answer) {
    rest = Buffer.concat([rest, chunk as Buffer])
    for (const event of eventsIn(rest, protobuf)) {
      yield event
      rest = rest.subarray(event.frame.length)
    }
  }
}

/** The events whose frames are whole. */
export function* eventsIn(bytes: Buffer, protobuf: boolean): Generator<Seen> {
  let rest = bytes
  for (let end = frameEnd(rest, protobuf); end > 0; end = frameEnd(rest, protobuf)) {
    yield eventIn(rest.subarray(0, end), protobuf)
    rest = rest.subarray(end)
  }
}

/** Where the first frame ends; 0 where it is not whole. */
function frameEnd(bytes: Buffer, protobuf: boolean): number {
  if (!protobuf) return bytes.indexOf('\n') + 1
  if (bytes.length < 4) return 0
  const end = 4 + bytes.readUInt32BE(0)
  return bytes.length < end ? 0 : end
}

function eventIn(frame: Buffer, protobuf: boolean): Seen {
  if (!protobuf) {
    const { type, object } = JSON.parse(frame.toString()) as { type: string; object: JsonObject }
    return { type, object, frame }
  }
  const fields = new Map(
    [...readFields(frame.subarray(4))].map(({ number, value }) => [number, value]),
  )
  const [raw] = [...readFields(fields.get(2) as Buffer)].map(({ value }) => value as Buffer)
  return {
    type: String(fields.get(1)),
    object: raw ? fromProtobuf(raw).object : {},
    frame,
  }
}
