import t from 'tap'
import { findReleases, supportedMinors, versionBefore, type ReadVersion } from './releases.ts'

/** Folders by the version of the API server in them; '' is where the usual one is. */
const folders =
  (versions: Readonly<Record<string, string>>): ReadVersion =>
  (folder = '') => {
    const version = versions[folder]
    return version === undefined ? undefined : { version, folder }
  }

void t.test('versions are found side by side, the oldest first', async (t) => {
  const { found, missing, mistakes } = findReleases(
    { KUBEBUILDER_ASSETS_1_33: '/33', KUBEBUILDER_ASSETS_1_9: '/9', KUBEBUILDER_ASSETS: '/36' },
    folders({ '': 'v1.36.2', '/33': 'v1.33.1', '/9': 'v1.9.0' }),
  )
  t.strictSame(
    found.map(({ minor, version, folder }) => [minor, version, folder]),
    [
      ['1.9', 'v1.9.0', '/9'],
      ['1.33', 'v1.33.1', '/33'],
      ['1.36', 'v1.36.2', ''],
    ],
  )
  t.strictSame(missing, ['1.31', '1.32', '1.34', '1.35'])
  t.strictSame(mistakes, [])
})

void t.test('the folder that a variable names goes before the usual one', async (t) => {
  const { found } = findReleases(
    { KUBEBUILDER_ASSETS_1_36: '/a' },
    folders({ '': 'v1.36.2', '/a': 'v1.36.0' }),
  )
  t.strictSame(
    found.map(({ folder }) => folder),
    ['/a'],
  )
})

void t.test('a variable that names something else is a mistake, not a version', async (t) => {
  const { found, missing, mistakes } = findReleases(
    { KUBEBUILDER_ASSETS_1_31: '/31', KUBEBUILDER_ASSETS_1_32: '/none' },
    folders({ '/31': 'v1.35.6' }),
  )
  t.strictSame(found, [])
  t.strictSame(missing, supportedMinors)
  t.strictSame(mistakes, [
    'KUBEBUILDER_ASSETS_1_31: /31 holds v1.35.6',
    'KUBEBUILDER_ASSETS_1_32: no kube-apiserver in /none',
  ])
})

void t.test('versionBefore() finds an older usual API server', async (t) => {
  const usual = (version: string): ReadVersion => folders({ '': version, '/31': 'v1.31.0' })
  t.equal(versionBefore('1.35', usual('v1.34.2')), 'v1.34.2')
  t.equal(versionBefore('1.10', usual('v1.9.3')), 'v1.9.3')
  t.equal(versionBefore('1.35', usual('v1.35.0')), undefined)
  t.equal(versionBefore('1.35', folders({})), undefined, 'where there is none')
})
