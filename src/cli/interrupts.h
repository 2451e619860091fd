// What the program does when it is asked to stop: SIGINT, SIGTERM and SIGHUP end it with exit code 130 at once, or,
// where files are just getting their names, when they have them. Temporary files and programs that it started go with
// it.
#pragma once

namespace aglow::cli {

// To be called once, before there are other threads: all of them inherit what it does about signals.
void watchSignals();

}  // namespace aglow::cli
