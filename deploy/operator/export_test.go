package operator

// FindCar is for tests.
var FindCar = findCar
