import t from 'tap'
import { questionOf } from '../../../src/hub/authorization/review.ts'

const resourceAttributes = { verb: 'list', resource: 'pods', namespace: 'shop' }

void t.test('a review evaluates its user, or its sender', async (t) => {
  const attributes = {
    isResource: true,
    verb: 'list',
    group: '',
    resource: 'pods',
    subresource: '',
    namespace: 'shop',
    name: '',
    fieldSelector: [],
  }
  t.strictSame(questionOf('SubjectAccessReview', { user: 'a', resourceAttributes }), {
    user: { name: 'a', groups: [] },
    attributes,
  })
  t.strictSame(questionOf('SelfSubjectAccessReview', { resourceAttributes }), {
    user: undefined,
    attributes,
  })
  const nonResourceAttributes = { path: '/metrics', verb: 'get' }
  t.strictSame(questionOf('SubjectAccessReview', { groups: ['g'], nonResourceAttributes }), {
    user: { name: '', groups: ['g'] },
    attributes: { isResource: false, verb: 'get', path: '/metrics' },
  })
})

void t.test('an invalid review is not evaluated', async (t) => {
  for (const spec of [
    {},
    { user: 'a' },
    { resourceAttributes },
    { user: '', groups: [], resourceAttributes },
    { user: 'a', resourceAttributes, nonResourceAttributes: { path: '/', verb: 'get' } },
    { user: 'a', resourceAttributes: 'pods' },
    { user: 'a', resourceAttributes: { verb: ['get'] } },
    { user: 'a', groups: 'system:masters', resourceAttributes },
    { user: 'a', groups: [5], resourceAttributes },
    { user: 'a', nonResourceAttributes: { path: 5, verb: 'get' } },
    { user: 'a', resourceAttributes: { ...resourceAttributes, fieldSelector: {} } },
  ]) {
    t.equal(questionOf('SubjectAccessReview', spec), undefined, JSON.stringify(spec))
  }
})

void t.test('only equality requirements of a field selector count', async (t) => {
  const fieldSelectorOf = (fieldSelector: {
    readonly rawSelector?: string
    readonly requirements?: readonly {
      readonly key: string
      readonly operator: string
      readonly values: readonly string[]
    }[]
  }): unknown => {
    const question = questionOf('SubjectAccessReview', {
      user: 'a',
      resourceAttributes: { ...resourceAttributes, fieldSelector },
    })
    return question?.attributes.isResource === true && question.attributes.fieldSelector
  }
  const ofNode = [{ field: 'spec.nodeName', operator: '=', value: 'n' }]
  t.strictSame(fieldSelectorOf({ rawSelector: 'spec.nodeName=n' }), ofNode)
  t.strictSame(fieldSelectorOf({ rawSelector: 'what is this' }), [])
  const requirement = { key: 'spec.nodeName', operator: 'In', values: ['n'] }
  t.strictSame(fieldSelectorOf({ requirements: [requirement] }), ofNode)
  t.strictSame(fieldSelectorOf({ requirements: [{ ...requirement, values: ['n', 'm'] }] }), [])
  t.strictSame(fieldSelectorOf({ requirements: [{ ...requirement, operator: 'NotIn' }] }), [])
})
