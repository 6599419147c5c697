import type { Duplex, Readable } from 'node:stream'
import type { AbortSignalLike } from '../../base/abort.ts'
import type { ListStream } from '../../api/codec/list.ts'
import type { WatchEvent } from '../../api/codec/watch.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { Component } from '../../api/request/component.ts'
import type { Representation } from '../../api/request/representation.ts'
import { unprovenIdentity, type Identity } from '../../api/request/identity.ts'
import type { RequestInfo } from '../../api/request/request-info.ts'
import type { Traffic } from '../../metrics/metrics.ts'
import type { Span } from '../../tracing/span.ts'
import type { HeaderList } from './headers.ts'

/** The other end of a client's connection: one object for all of its requests. */
export interface Peer {
  readonly address: string
  readonly port: number
  readonly localAddress: string
  readonly localPort: number
  /**
   * The inode of the hub's own end, as in the kernel's socket table; absent where the client has
   * sent a certificate, and where it is unknown.
   */
  readonly inode?: string
  /**
   * Absent where the connection has no TLS. The certificate is absent where the client sent none
   * that the listener's authorities had signed when the connection was made. `outOfDate` instead of
   * it: one that they had signed, of which a date alone was wrong then, on a connection within this
   * host. `withoutCertificate`: the client sent none at all.
   */
  readonly tls?: {
    readonly certificate?: ClientCertificate
    readonly outOfDate?: ClientCertificate
    readonly withoutCertificate?: true
  }
}

/**
 * The subject and validity of a client certificate; the handshake proved its key. Times are in
 * milliseconds since the epoch.
 */
export interface ClientCertificate {
  readonly commonName: string
  readonly organizations: readonly string[]
  readonly validFrom: number
  readonly validTo: number
  /** The SHA-256 of all of it. */
  readonly fingerprint: string
}

/** The client's side of a request: one object, which all copies of the request share. */
export interface RequestClient {
  /** Bytes of the answer's body that were written to it. */
  readonly sentBytes: number
  /** Learns of such bytes as they are written. */
  meter?: { written(bytes: number): void }
  /** Learns of such bytes that it does not take at once, and of the sink where they wait. */
  onWaiting?: (bytes: number, sink: Sink) => void
  /** Ends the request in the client's place: aborts its signal. */
  abort(reason: Error): void
}

/** Follows a request at its upstreams. */
export interface RequestFollower {
  /** An upstream may have received the first bytes of the request. */
  sent(): void
  /** Such bytes of an upstream's answer have arrived; 0: its head. */
  received(bytes: number): void
}

/** A request as a listener received it. */
export interface Incoming {
  readonly id: string
  readonly method: string
  /** Path and query as sent. */
  readonly url: string
  readonly headers: HeaderList
  readonly peer: Peer
  /** Absent where the request has no body. */
  readonly body?: Readable
  /** Whether the client requests another protocol for its connection (WebSocket, SPDY). */
  readonly upgrade: boolean
  /** Aborts when the client has disconnected, or has its answer, so that work for it stops. */
  readonly signal: AbortSignalLike
  /** Absent where the request has no client. */
  readonly client?: RequestClient
  /**
   * Has to be called, any number of times, once the caller's identity is proven: the listener
   * tolerates more from the connections of such callers. Absent where the request has no client.
   */
  readonly onProven?: (isNode: boolean) => void
}

/**
 * Whose credentials a request carries upstream: the node's certificate, or only what the caller
 * sent.
 */
export type Credential = 'node' | 'caller'

/** The part of an upstream's answer that shows whether the caller was authenticated. */
export interface UpstreamAnswer {
  readonly method: string
  readonly status: number
  readonly headers: HeaderList
}

/**
 * A caller's claim to an identity. Only while it holds may the cache record or answer under that
 * identity.
 */
export interface Claim {
  /** Whether it holds, decided without another request to an API server. */
  holds(): boolean
  /** The caller's identity as known now, which can change during a request. */
  identity(): Identity
  /** The same once the token's signature is verified with the keys known now. */
  verifiedIdentity(): Promise<Identity>
  /**
   * Has to be called when an upstream answers a request that made the claim. Resolves once what the
   * answer newly shows of the claim is on the disk, or a disk that hangs was waited for;
   * `undefined`: nothing new.
   */
  onUpstreamAnswer(answer: UpstreamAnswer): Promise<void> | undefined
  /**
   * The id of the key that signed the token, as the token names it; `undefined` where the token
   * names no service account.
   */
  readonly keyId: string | undefined
}

/** A request whose meaning and sender are known. */
export interface Exchange extends Incoming {
  readonly info: RequestInfo
  readonly component: Component
  readonly identity: Identity
  readonly credential: Credential
  /** Absent where the connection itself has proved the identity. */
  readonly claim?: Claim
  /**
   * The caller is known only while the hub is offline, until this aborts: the cache answers it, and
   * nothing is sent upstream for it. Absent: it is known at any time.
   */
  readonly knownUntil?: AbortSignal
  /**
   * The representations that the client accepts, most preferred first; empty where the hub can
   * decode none.
   */
  readonly representations: readonly Representation[]
  /**
   * The whole body, where the hub had to read it to answer or record the request: `body` has been
   * read then, and the hub sends this instead.
   */
  readonly content?: Buffer
  /** Where its traffic is counted; absent for the hub's own. */
  readonly traffic?: Traffic
  readonly follower?: RequestFollower
  /** The span of the request, where its trace is recorded. */
  readonly span?: Span
}

/** The origin of an answer, for traces and metrics. */
export type ReplySource = 'cloud' | 'cache' | 'hub'

interface ReplyOrigin {
  readonly from: ReplySource
  readonly explanation?: Explanation
}

interface ReplyHead extends ReplyOrigin {
  readonly status: number
  readonly headers: HeaderList
}

/**
 * A body that is pushed into a sink: returns at once, and writes until it ends or fails the sink.
 * May be called once. The returned function stops it: nothing is written afterwards.
 */
export type ByteSource = (sink: Sink) => () => void

export type Reply = BytesReply | BodyReply | ObjectReply | ListReply | WatchReply | UpgradeReply

interface UndecodedReply extends ReplyHead {
  /** The API server is starting: it may refuse what it allows once it is ready. */
  readonly isStarting?: true
}

/** Bytes that pass unread. */
export interface BytesReply extends UndecodedReply {
  readonly kind: 'bytes'
  readonly source: ByteSource
}

/** A whole body: a Status, a document, an answer that was held until all of it had arrived. */
export interface BodyReply extends UndecodedReply {
  readonly kind: 'body'
  readonly body: Uint8Array
}

/** The answer of an upstream, as it came. */
export type UpstreamReply = BytesReply | BodyReply

/** One object: the answer to a get or a write. */
export interface ObjectReply extends ReplyHead {
  readonly kind: 'object'
  readonly representation: Representation
  readonly gvk: GVK
  readonly object: ApiObject
  /** The upstream's body. A layer that changes the object has to remove it. */
  readonly body?: Uint8Array
}

export interface ListReply extends ReplyHead {
  readonly kind: 'list'
  readonly representation: Representation
  readonly list: ListStream
}

export interface WatchReply extends ReplyHead {
  readonly kind: 'watch'
  /**
   * The representation of the events. Before the first event it is the one that the client prefers:
   * only events show whether the server supports it.
   */
  readonly representation: () => Representation
  /**
   * Groups of events that arrived together. Ends where the watch ends cleanly; throws where it
   * breaks.
   */
  readonly events: AsyncIterable<readonly WatchEvent[]>
  /**
   * The kind of the watched objects, for frames that the hub makes; all empty before the first
   * event.
   */
  readonly gvk: () => GVK
  /** Other clients get the same events, so layers should cache what they make of one. */
  readonly isShared?: true
}

/**
 * The connection changes its protocol: `take` gets the client's socket, with the bytes already read
 * from it, and writes the head of the answer as well, a refusal included.
 */
export interface UpgradeReply extends ReplyOrigin {
  readonly kind: 'upgrade'
  readonly take: (socket: Duplex, head: Buffer) => void
  /**
   * The status of the answer once known, 0 where the connection ended before; absent where it is
   * always 101.
   */
  readonly finalStatus?: Promise<number>
}

/** A destination for the bytes of an answer: a client's connection, or one that discards them. */
export interface Sink {
  /**
   * False: the caller has to stop until `drained` resolves. `onWritten` may be called once nothing
   * reads the memory of `chunk` any longer; it is not where the connection ends before.
   */
  write(chunk: Uint8Array, onWritten?: () => void): boolean
  /** Resolves when more can be written, or the client has disconnected. */
  drained(): Promise<void>
  /** Trailers are name and value pairs, as in `HeaderList`. */
  end(trailers?: readonly string[]): void
  /** Destroys the connection, so that the client detects the truncation. */
  fail(cause: Error): void
}

export type Handler<In, Out = Reply> = (exchange: In) => Promise<Out>

/** A reply whose objects have been encoded: what a listener can send. */
export type WireReply = BytesReply | BodyReply | UpgradeReply

/**
 * Whether the caller's identity is proven: by its connection, or by a token that the cluster has
 * signed or an API server has accepted. It can become proven during its first request, by the API
 * server's answer.
 */
export const isProven = ({ claim }: Pick<Exchange, 'claim'>): boolean => claim?.holds() !== false

/** The proven identity of the caller; `unproven` where there is none. */
export const provenIdentity = (exchange: Pick<Exchange, 'claim' | 'identity'>): Identity =>
  isProven(exchange) ? exchange.identity : unprovenIdentity

/** An API server, or what stands before it, has answered otherwise than the hub needs it. */
export class UnusableAnswer extends Error {
  readonly code = 'UNUSABLE_ANSWER'
}

/** Why the hub gave this answer. Without secrets: it is logged, and shown to root. */
export interface Explanation {
  /** Why its source has answered, in words. */
  readonly reason?: string
  /** The API server that answered. */
  readonly upstream?: string
  /** How filters changed it; absent where none acts. */
  readonly filtered?: Filtered
}

/** The filters that act on an answer, and what they have changed so far: a list is read as sent. */
export interface Filtered {
  readonly filters: readonly string[]
  /** Absent for a watch, whose events several clients share. */
  readonly objects?: { edited: number; withheld: number }
}

/** An answer, as far as it is explained. */
interface Explained {
  readonly explanation?: Explanation
}

/** The same answer with a reason; a reason that it has already is more specific, and follows. */
export function because<R extends Explained>(reply: R, reason: string): R {
  const { explanation } = reply
  const special = explanation?.reason
  const both = special === undefined ? reason : `${reason}: ${special}`
  return { ...reply, explanation: { ...explanation, reason: both } }
}

/** The same answer, with the changes that filters make. */
export const filteredBy = <R extends Explained>(reply: R, filtered: Filtered): R => ({
  ...reply,
  explanation: { ...reply.explanation, filtered },
})
