import t from 'tap'
import {
  compareVersions,
  isNewer,
  resourceVersion,
  type ResourceVersion,
} from '../../../src/api/kube/resource-version.ts'

const version = (text: string): ResourceVersion => {
  const parsed = resourceVersion(text)
  if (parsed === undefined) throw new Error(`${text} is no version`)
  return parsed
}

void t.test('only positive decimals are resource versions', async (t) => {
  for (const good of ['1', '10', '123456789012345678901234567890'])
    t.equal(resourceVersion(good), good)
  for (const bad of [
    undefined,
    '',
    '0',
    '00',
    '01',
    '-1',
    '+1',
    '1.0',
    '1e3',
    ' 1',
    '1 ',
    '1\n',
    'x',
    '0x1',
    '١',
  ]) {
    t.equal(resourceVersion(bad), undefined, JSON.stringify(bad))
  }
})

void t.test('versions compare as numbers of any length', async (t) => {
  t.ok(compareVersions(version('9'), version('10')) < 0)
  t.ok(compareVersions(version('10'), version('9')) > 0)
  t.ok(compareVersions(version('18446744073709551616'), version('18446744073709551615')) > 0)
  t.equal(compareVersions(version('42'), version('42')), 0)
  t.strictSame(['100', '20', '3'].map(version).sort(compareVersions), ['3', '20', '100'])
})

void t.test('isNewer() orders versions, and is false for anything else', async (t) => {
  t.equal(isNewer('10', '9'), true)
  t.equal(isNewer('9', '10'), false)
  t.equal(isNewer('9', '9'), false)
  for (const none of [undefined, '', '0', 'x']) {
    t.equal(isNewer('9', none), false, JSON.stringify(none))
    t.equal(isNewer(none, '9'), false, JSON.stringify(none))
  }
})
