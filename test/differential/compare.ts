import { isDeepStrictEqual } from 'node:util'
import { nameOf, type RequestCase } from './request-case.ts'
import type { Client, RawResponse } from './client.ts'
import {
  withoutInstances,
  watchEvents,
  connectionOf,
  type NormalizedResponse,
  type Normalizer,
} from './normalize.ts'

/** The answers to one request, from the API server and through another client. */
export interface Compared {
  readonly name: string
  readonly client: string
  readonly direct: NormalizedResponse | undefined
  readonly through: NormalizedResponse | undefined
  /** Why there is no answer at that client. */
  readonly failure?: unknown
  /** Whether the two differ in fields that normalization removes. */
  readonly differsInConnection: boolean
}

export interface Clients {
  readonly direct: Client
  readonly through: readonly Client[]
}

/** How often a read is repeated where the cluster itself has changed in between. */
const repetitions = 4

/**
 * Reads through every client. A change in the cluster must not count as a difference: two answers
 * differ only if the API server answers the same before and after, and the hub answers otherwise.
 * One such answer is enough.
 */
export const compareRead = (
  request: RequestCase,
  clients: Clients,
  normalize: Normalizer,
): Promise<Compared[]> => compareRepeatedly(request, clients, normalize)

/**
 * Watches through every client, like reads. Connections may break, and a client then watches again:
 * a broken watch is repeated, and is a difference only where it breaks each time. `onBroken` hears
 * of each, to be judged over a whole run.
 */
export const compareWatch = (
  request: RequestCase,
  clients: Clients,
  onBroken: (answer: Compared) => void,
): Promise<Compared[]> => compareRepeatedly(request, clients, watchEvents, onBroken)

async function compareRepeatedly(
  request: RequestCase,
  clients: Clients,
  normalize: Normalizer,
  onBroken?: (answer: Compared) => void,
): Promise<Compared[]> {
  const { direct } = clients
  const others = clientsFor(request, clients)
  for (let left = repetitions; ; left -= 1) {
    const before = { client: direct, response: await direct.ask(request) }
    const answers = await compareWith(before, request, others, normalize)
    const unlike = answers.filter((answer) => !areEqual(answer))
    const broken = onBroken ? unlike.filter(({ through }) => through === undefined) : []
    for (const answer of broken) onBroken?.(answer)
    if (left === 0 || unlike.length === 0) return answers
    if (unlike.length === broken.length) continue
    const after = await direct.ask(request)
    if (isDeepStrictEqual(normalize(before.response, direct), normalize(after, direct)))
      return answers
  }
}

/** Writes through every client at once, each to objects in its own namespace. */
export async function compareWrite(request: RequestCase, clients: Clients): Promise<Compared[]> {
  const ask = async (client: Client): Promise<ClientResponse> => ({
    client,
    response: await client.ask(request),
  })
  const [first, ...rest] = await Promise.all([
    ask(clients.direct),
    ...clientsFor(request, clients).map(ask),
  ])
  return rest.map((other) => compared(request, first, other, withoutInstances))
}

const clientsFor = (request: RequestCase, { through }: Clients): readonly Client[] =>
  through.filter((client) => client.supports(request))

function compareWith(
  first: ClientResponse,
  request: RequestCase,
  others: readonly Client[],
  normalize: Normalizer,
): Promise<Compared[]> {
  return Promise.all(
    others.map(async (client) =>
      compared(request, first, { client, response: await client.ask(request) }, normalize),
    ),
  )
}

export const areEqual = ({ direct, through }: Compared): boolean =>
  isDeepStrictEqual(direct, through)

interface ClientResponse {
  readonly client: Client
  readonly response: RawResponse | undefined
}

const compared = (
  request: RequestCase,
  first: ClientResponse,
  second: ClientResponse,
  normalize: Normalizer,
): Compared => ({
  name: nameOf(request),
  client: second.client.name,
  direct: normalize(first.response, first.client),
  through: normalize(second.response, second.client),
  ...(second.response === undefined && { failure: second.client.failure }),
  differsInConnection: differInConnection(first.response, second.response),
})

const differInConnection = (
  first: RawResponse | undefined,
  second: RawResponse | undefined,
): boolean =>
  first !== undefined &&
  second !== undefined &&
  !isDeepStrictEqual(connectionOf(first), connectionOf(second))
