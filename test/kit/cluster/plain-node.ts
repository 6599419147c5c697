import { mallocSettings } from '../../../src/cli/memory-settings.ts'

/** Names a module that every program on Node loads first that a test starts in this way. */
export const preloadVariable = 'NODEHUB_TEST_PRELOAD'

/**
 * A command line for a program that runs on Node as it would by itself: the test runner has every
 * Node that a test starts load parts of the runner, by an environment variable that it sets however
 * the environment was given. As the image does, it opens no debugger, and a hub has
 * malloc's settings already.
 */
export function plainNode(script: string, ...args: readonly string[]): [string, string[]] {
  const preload = process.env[preloadVariable]
  const options = ['--disable-sigusr1', ...(preload === undefined ? [] : [`--import=${preload}`])]
  const malloc = Object.entries(mallocSettings).map((each) => each.join('='))
  return ['env', ['-u', 'NODE_OPTIONS', ...malloc, process.execPath, ...options, script, ...args]]
}
