/**
 * On an owner while its patch is rolled out: the merge patch that takes it back. So an exit plan
 * that was interrupted can go on, or be taken back by hand.
 */
export const beforeAnnotation = 'nodehub.io/before-exit-plan'
