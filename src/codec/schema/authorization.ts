import { labelSelectorRequirement, objectMeta } from './meta.ts'
import { bool, list, map, message, of, optional, shown, string, wrapped } from './notation.ts'

// kubernetes/apimachinery pkg/apis/meta/v1

const fieldSelectorRequirement = message('FieldSelectorRequirement', {
  key: shown(string(1)),
  operator: shown(string(2)),
  values: list(string(3)),
})

// kubernetes/api authorization/v1

const fieldSelectorAttributes = message('FieldSelectorAttributes', {
  rawSelector: string(1),
  requirements: list(of(2, fieldSelectorRequirement)),
})

const labelSelectorAttributes = message('LabelSelectorAttributes', {
  rawSelector: string(1),
  requirements: list(of(2, labelSelectorRequirement)),
})

const resourceAttributes = message('ResourceAttributes', {
  namespace: string(1),
  verb: string(2),
  group: string(3),
  version: string(4),
  resource: string(5),
  subresource: string(6),
  name: string(7),
  fieldSelector: optional(of(8, fieldSelectorAttributes)),
  labelSelector: optional(of(9, labelSelectorAttributes)),
})

const nonResourceAttributes = message('NonResourceAttributes', {
  path: string(1),
  verb: string(2),
})

const extraValue = wrapped('ExtraValue', string)

const subjectAccessReviewSpec = message('SubjectAccessReviewSpec', {
  resourceAttributes: optional(of(1, resourceAttributes)),
  nonResourceAttributes: optional(of(2, nonResourceAttributes)),
  user: string(3),
  groups: list(string(4)),
  extra: map(of(5, extraValue)),
  uid: string(6),
})

const subjectAccessReviewStatus = message('SubjectAccessReviewStatus', {
  allowed: shown(bool(1)),
  denied: bool(4),
  reason: string(2),
  evaluationError: string(3),
})

export const subjectAccessReview = message('SubjectAccessReview', {
  metadata: of(1, objectMeta),
  spec: of(2, subjectAccessReviewSpec),
  status: of(3, subjectAccessReviewStatus),
})
