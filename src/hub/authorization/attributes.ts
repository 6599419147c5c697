/** A user as an authorizer sees it (apiserver pkg/authentication/user). */
export interface UserInfo {
  readonly name: string
  readonly groups: readonly string[]
}

/** The action that a user requests (apiserver pkg/authorization/authorizer, Attributes). */
export type Attributes = ResourceAttributes | NonResourceAttributes

export interface ResourceAttributes {
  readonly isResource: true
  readonly verb: string
  readonly group: string
  readonly resource: string
  /** These are '' where the request has none. */
  readonly subresource: string
  readonly namespace: string
  readonly name: string
}

export interface NonResourceAttributes {
  readonly isResource: false
  readonly verb: string
  readonly path: string
}
