// The conformance agent of C++ (specification, the conformance agent): does what lines of JSON on standard input say.
#include <iostream>
#include <string>

#include "agent.h"

int main() {
  antipode::agent::Agent agent(std::cout);
  std::string line;
  while (std::getline(std::cin, line)) agent.Take(line);
  return 0;
}
