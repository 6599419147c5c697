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
  ]) {
    t.equal(questionOf('SubjectAccessReview', spec), undefined, JSON.stringify(spec))
  }
})
