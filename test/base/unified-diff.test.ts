import t from 'tap'
import { unifiedDiff } from '../../src/base/unified-diff.ts'

const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, at) => `line ${from + at}`)

void t.test('equal texts have no hunk', (t) => {
  t.equal(unifiedDiff('a\nb\n', 'a\nb\n'), '')
  t.end()
})

void t.test('a change is shown with three lines around it', (t) => {
  const before = numbered(1, 20)
  const after = before.toSpliced(9, 1, 'changed', 'added')
  t.equal(
    unifiedDiff(before.join('\n'), after.join('\n')),
    `@@ -7,7 +7,8 @@
 line 7
 line 8
 line 9
-line 10
+changed
+added
 line 11
 line 12
 line 13
`,
  )
  t.end()
})

void t.test('changes far apart are hunks of their own', (t) => {
  const before = numbered(1, 30)
  const after = before.toSpliced(24, 1).toSpliced(2, 0, 'added')
  const heads = unifiedDiff(before.join('\n'), after.join('\n')).match(/^@@.*$/gm)
  t.strictSame(heads, ['@@ -1,5 +1,6 @@', '@@ -22,7 +23,6 @@'])
  t.end()
})

void t.test('texts too long to compare line by line are shown as replaced', (t) => {
  const [before, after] = [numbered(1, 3_000), numbered(4_001, 7_000)]
  const diff = unifiedDiff(before.join('\n'), after.join('\n'))
  t.ok(diff.startsWith('@@ -1,3000 +1,3000 @@\n-line 1\n'))
  t.end()
})
