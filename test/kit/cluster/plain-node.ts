/**
 * A command line for a program that runs on Node as it would by itself: the test runner has every
 * Node that a test starts load parts of the runner, by an environment variable that it sets however
 * the environment was given. As the image does, it opens no debugger.
 */
export const plainNode = (script: string, ...args: readonly string[]): [string, string[]] => [
  'env',
  ['-u', 'NODE_OPTIONS', process.execPath, '--disable-sigusr1', script, ...args],
]
