import type { IncomingMessage } from 'node:http'
import type { RequestInfo } from '../api/request/request-info.ts'
import type { Authorizer } from './authentication.ts'
import type { PodLogs } from './pod-logs.ts'
import type { ResponseWriter } from './response-writer.ts'
import type { Registry } from './registry.ts'
import type { SeenRequest } from './requests.ts'
import type { View } from './storage.ts'
import type { Tokens } from './tokens.ts'
import type { User } from './users.ts'
import type { Watches } from './watches.ts'
import type { WatchSettings } from './watch.ts'

/** The state and settings that answers depend on. */
export interface Api {
  readonly registry: Registry
  readonly tokens: Tokens
  readonly watches: Watches
  /** How long a reader waits for a version that has not come yet. */
  readonly freshnessMs: number
  readonly watchSettings: WatchSettings
  readonly anonymousAllowed: boolean
  authorizer(): Authorizer
  readonly logs: PodLogs
}

/** One request on its way to its answer. */
export interface Call {
  readonly request: IncomingMessage
  readonly seen: SeenRequest
  readonly writer: ResponseWriter
  readonly view: View
  readonly user: User
  readonly info: RequestInfo
}

/** A request and the writer of its answer. */
export type ResponseTarget = Pick<Call, 'seen' | 'writer'>
