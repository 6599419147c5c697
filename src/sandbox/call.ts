import type { IncomingMessage } from 'node:http'
import type { RequestInfo } from '../api/request/request-info.ts'
import type { Authorizer } from './authentication.ts'
import type { Freshness } from './list.ts'
import type { Asking } from './negotiation.ts'
import type { ResponseWriter } from './response-writer.ts'
import type { Registry } from './registry.ts'
import type { SeenRequest } from './requests.ts'
import type { View } from './storage.ts'
import type { Tokens } from './tokens.ts'
import type { User } from './users.ts'
import type { Watches } from './watches.ts'
import type { WatchSettings } from './watch.ts'

/** What answers are made from. */
export interface Api {
  readonly registry: Registry
  readonly tokens: Tokens
  readonly watches: Watches
  readonly freshness: Freshness
  readonly watchSettings: WatchSettings
  readonly anonymousAllowed: boolean
  authorizer(): Authorizer
  /** What a pod's container has written, for its log. */
  readonly logs: Logs
}

export interface Logs {
  /** Calls `tell` for every line to come, until disposed. */
  follow(namespace: string, pod: string, tell: (text: string) => void): Disposable
  read(namespace: string, pod: string): string
}

/** One request on its way to its answer. */
export interface Call {
  readonly request: IncomingMessage
  readonly seen: SeenRequest
  readonly outlet: ResponseWriter
  readonly view: View
  readonly user: User
  readonly info: RequestInfo
}

export const askingOf = ({ headers, query }: SeenRequest): Asking => ({
  accept: headers['accept'] as string | undefined,
  userAgent: headers['user-agent'] as string | undefined,
  query,
})
