import { objectMeta } from './meta.ts'
import {
  bool,
  int64,
  list,
  map,
  message,
  of,
  optional,
  shown,
  string,
  time,
  wrapped,
} from './notation.ts'

// kubernetes/api authentication/v1

const boundObjectReference = message('BoundObjectReference', {
  kind: string(1),
  apiVersion: string(2),
  name: string(3),
  uid: string(4),
})

const tokenRequestSpec = message('TokenRequestSpec', {
  audiences: shown(list(string(1))),
  expirationSeconds: shown(optional(int64(4))),
  boundObjectRef: shown(optional(of(3, boundObjectReference))),
})

const tokenRequestStatus = message('TokenRequestStatus', {
  token: shown(string(1)),
  expirationTimestamp: time(2),
})

export const tokenRequest = message('TokenRequest', {
  metadata: of(1, objectMeta),
  spec: of(2, tokenRequestSpec),
  status: of(3, tokenRequestStatus),
})

const tokenReviewSpec = message('TokenReviewSpec', {
  token: string(1),
  audiences: list(string(2)),
})

const extraValue = wrapped('ExtraValue', string)

const userInfo = message('UserInfo', {
  username: string(1),
  uid: string(2),
  groups: list(string(3)),
  extra: map(of(4, extraValue)),
})

const tokenReviewStatus = message('TokenReviewStatus', {
  authenticated: bool(1),
  user: of(2, userInfo),
  audiences: list(string(4)),
  error: string(3),
})

export const tokenReview = message('TokenReview', {
  metadata: of(1, objectMeta),
  spec: of(2, tokenReviewSpec),
  status: of(3, tokenReviewStatus),
})
