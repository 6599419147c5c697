import type { Duplex, Readable } from 'node:stream'
import type { AbortSignalLike } from '../../base/abort.ts'
import type { ListStream } from '../../api/codec/list.ts'
import type { WatchEvent } from '../../api/codec/watch.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { Component } from '../../api/request/component.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { Identity } from '../../api/request/identity.ts'
import type { RequestInfo } from '../../api/request/request-info.ts'
import type { HeaderList } from './headers.ts'

/** The other end of a client's connection; the same object for each of its requests. */
export interface Peer {
  readonly address: string
  readonly port: number
  readonly localAddress: string
  readonly localPort: number
  /**
   * The inode of the hub's own end, as the kernel's socket table names it; absent with TLS, and
   * where it cannot be known.
   */
  readonly inode?: string
  /**
   * Absent where the connection has no TLS. The certificate is absent where the client showed none
   * that the listener's authorities vouched for when the connection was made.
   */
  readonly tls?: { readonly certificate?: ClientCertificate }
}

/**
 * Whom a certificate names, and when; its key was proved in the handshake. Times are in
 * milliseconds since the epoch.
 */
export interface ClientCertificate {
  readonly commonName: string
  readonly organizations: readonly string[]
  readonly validFrom: number
  readonly validTo: number
}

/** A request as a listener took it. */
export interface Incoming {
  readonly id: string
  readonly method: string
  /** Path and query as they were sent. */
  readonly url: string
  readonly headers: HeaderList
  readonly peer: Peer
  /** Absent where the request has no body. */
  readonly body?: Readable
  /** Whether the client asks to change the protocol of its connection (WebSocket, SPDY). */
  readonly upgrade: boolean
  /** Aborts when the client has gone: whatever works for it stops. */
  readonly signal: AbortSignalLike
  /**
   * To be called, any number of times, once it is known that the caller is who it says: the
   * listener is more patient with the connections of such callers. Absent where no client is at the
   * other end.
   */
  readonly onProven?: (identity: Identity) => void
  /** To be called, before the answer goes out, where that turns out not to be so any more. */
  readonly onDisproven?: () => void
}

/** Whose credentials go upstream: the node's certificate, or nothing but what the caller sent. */
export type Credential = 'node' | 'caller'

/** The part of an answer that tells whether the caller was authenticated. */
export interface UpstreamAnswer {
  readonly method: string
  readonly status: number
  readonly headers: HeaderList
}

/** A user as an API server knows it (authentication.k8s.io UserInfo). */
export interface User {
  readonly username: string
  readonly uid: string
}

/**
 * A caller's claim to an identity. Only while it holds may anything be recorded or answered from
 * the cache under that identity.
 */
export interface Claim {
  /** Whether it holds, as far as can be told without asking an API server. */
  holds(): boolean
  /**
   * The caller's identity as far as it is known now: it can become known while a request is under
   * way.
   */
  identity(): Identity
  /**
   * The identity of the token alone, under which its holder's answers are kept while its account is
   * not known.
   */
  readonly tokenIdentity: Identity
  /** To be called when an upstream has answered a request that made the claim. */
  onUpstreamAnswer(answer: UpstreamAnswer): void
  /**
   * The id of the key with which the cluster has signed the token, as the token says; `undefined`
   * where it names no service account.
   */
  readonly keyId: string | undefined
  /**
   * Finds out whether the caller is the service account that its token names: `ask` has an API
   * server say who the token's holder is, and resolves to `undefined` where none says it. Resolves
   * to the caller's identity, as far as it can be told then. `ask` is called once for a token where
   * it is answered, and else not again for some time. Absent where there is nothing to find out.
   */
  readonly confirm?: (ask: () => Promise<User | undefined>) => Promise<Identity>
}

/** A request whose meaning and sender are known. */
export interface Exchange extends Incoming {
  readonly info: RequestInfo
  readonly component: Component
  readonly identity: Identity
  readonly credential: Credential
  /** Absent where the connection itself has proved the identity. */
  readonly claim?: Claim
  /** The forms the client takes, most wanted first; empty where none is read here. */
  readonly representations: readonly Representation[]
  /**
   * The whole body, where the answer is kept or given by what it says; `body` has been read then,
   * and this is sent in its place.
   */
  readonly content?: Buffer
  /**
   * Whether one of those who read the events of a watch compares them with what was held before;
   * may change while it lasts. Absent: its component's filters tell.
   */
  readonly comparesEvents?: () => boolean
  /** Called when an upstream may have seen the first bytes of the request. */
  readonly onSent?: () => void
}

/** Where an answer came from: for traces and metrics. */
export type ReplySource = 'cloud' | 'cache' | 'hub'

interface ReplyHead {
  readonly status: number
  readonly headers: HeaderList
  readonly from: ReplySource
}

/**
 * A body that is pushed into a sink: returns at once, and afterwards writes until it ends or fails
 * the sink. To be called once. The function that it returns gives up the rest: nothing is written
 * after that.
 */
export type ByteSource = (sink: Sink) => () => void

export type Reply = BytesReply | BodyReply | ObjectReply | ListReply | WatchReply | UpgradeReply

/** Bytes nobody looks at, as they come. */
export interface BytesReply extends ReplyHead {
  readonly kind: 'bytes'
  readonly source: ByteSource
  /**
   * The answer lasts as long as its client reads, and needs nothing of the hub but the two
   * connections. Every `UpgradeReply` lasts.
   */
  readonly longRunning?: true
}

/** A whole body at hand that is no API object to be filtered: a Status, a document. */
export interface BodyReply extends ReplyHead {
  readonly kind: 'body'
  readonly body: Uint8Array
}

/** One object: the answer to a get, and to writes. */
export interface ObjectReply extends ReplyHead {
  readonly kind: 'object'
  readonly representation: Representation
  readonly gvk: GVK
  readonly object: ApiObject
  /**
   * The body as it came, compressed where the headers say so. A layer that changes the object
   * leaves it out.
   */
  readonly body?: Uint8Array
}

export interface ListReply extends ReplyHead {
  readonly kind: 'list'
  readonly representation: Representation
  readonly list: ListStream
  /**
   * The body as it came, compressed as the headers say, for clients that take it so: to be read
   * instead of `list`. A layer that changes the list leaves it out; the list is then sent
   * uncompressed, whatever the headers say.
   */
  readonly upstreamBody?: AsyncGenerator<readonly Uint8Array[]>
}

export interface WatchReply extends ReplyHead {
  readonly kind: 'watch'
  /**
   * The form of the events. Before the first one, the form that the client wants most: only events
   * show whether the server makes it.
   */
  readonly representation: () => Representation
  /**
   * Groups of events that arrived together. Ends where the watch ends cleanly; throws where it
   * broke.
   */
  readonly events: AsyncIterable<readonly WatchEvent[]>
  /**
   * Kind of the objects watched, for frames that have to be made here; all empty before the first
   * event.
   */
  readonly gvk: () => GVK
  /** A Table's column definitions, for the first such frame (see `ListEnd.extra`). */
  readonly extra?: string
  /** The same events are given to others: what a layer makes of one is to be made once. */
  readonly isShared?: true
  /**
   * What is stored of the watched collection now, which may be further than the events that were
   * read; `undefined`: that cannot be told.
   */
  readonly snapshot?: () => CollectionSnapshot | undefined
}

/**
 * The objects of a collection as they were stored at a version, in the form of the watch's events
 * (see `StoredList`).
 */
export interface CollectionSnapshot extends Disposable {
  readonly gvk: GVK
  readonly resourceVersion: string
  readonly batches: Iterable<readonly ApiObject[]>
  readonly isWhole: () => boolean
}

/**
 * The connection may change its protocol: whoever answers takes the client's socket, with what was
 * read of it already, and writes the answer's head too, a refusal included.
 */
export interface UpgradeReply {
  readonly kind: 'upgrade'
  readonly from: ReplySource
  readonly take: (socket: Duplex, head: Buffer) => void
  /**
   * The code of the answer once it is known, 0 where the connection ended before; absent where it
   * is 101 in any case.
   */
  readonly finalStatus?: Promise<number>
}

/** The way to one client. Only `server/` implements it. */
export interface Sink {
  /** False: stop until `drained` resolves. */
  write(chunk: Uint8Array): boolean
  /** Resolves when there is room again, or the client has gone. */
  drained(): Promise<void>
  /** Trailers are raw name and value pairs, as in `HeaderList`. */
  end(trailers?: readonly string[]): void
  /** The client sees the break as a break: its connection is destroyed. */
  fail(cause: Error): void
}

export type Handler<In, Out = Reply> = (exchange: In) => Promise<Out>

/** What is left when every object has become bytes: what a listener can send. */
export type WireReply = BytesReply | BodyReply | UpgradeReply
